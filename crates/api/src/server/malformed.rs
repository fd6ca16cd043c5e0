//! Requests that hyper cannot parse. It answers them with a bare status, which no setting changes. Nothing else is written
//! to a connection that has no request, so these bytes are recognised on their way to the socket and replaced by an error
//! with a body and a request id. No route has matched, so the plain rendering is used.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use axum::http::StatusCode;

use crate::frontend::plain_json;
use crate::identity::RequestId;
use crate::problem::{Kind, Problem};

/// Every answer of ours has this.
const OURS: &[u8] = b"x-request-id";

/// The whole answer to send instead, if these bytes are hyper's own refusal of a request.
pub fn instead_of(bytes: &[u8], peer: SocketAddr) -> Option<Vec<u8>> {
    let head = bytes.strip_suffix(b"\r\n\r\n")?;
    let status = head.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
    let is_ours = head.windows(OURS.len()).any(|window| window.eq_ignore_ascii_case(OURS));
    if is_ours || head.len() > 512 || !holds(head, b"content-length: 0") {
        return None;
    }
    let status = StatusCode::from_bytes(status).ok()?;
    let problem = match status {
        StatusCode::BAD_REQUEST => Problem::new(Kind::Invalid, "malformed HTTP request"),
        StatusCode::URI_TOO_LONG => Problem::new(Kind::TooLarge, "the request target is too long"),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            Problem::new(Kind::TooLarge, "the request headers are too many or too large")
        }
        _ => return None,
    };
    Some(whole(status, &problem, peer))
}

/// A whole response for a connection that no router serves.
pub fn response_bytes(problem: &Problem, peer: SocketAddr) -> Vec<u8> {
    whole(problem.kind.status(), problem, peer)
}

/// Logs a request that was refused before any check, so that the log has the id that its client was told. One line, where
/// a request that the guard checks has two: an attacker cannot fill the log faster this way.
pub fn log_refused(id: &RequestId, peer: IpAddr, status: StatusCode, problem: &Problem) {
    tracing::info!(
        target: "gembridge::request",
        request = id.text(&mut [0; RequestId::LENGTH]),
        address = %peer,
        status = status.as_u16(),
        refused = problem.message,
        "request refused"
    );
}

fn whole(status: StatusCode, problem: &Problem, peer: SocketAddr) -> Vec<u8> {
    let id = RequestId::fresh();
    log_refused(&id, peer.ip(), status, problem);
    let body = plain_json(problem, &id);
    let retry = problem.kind.retry_after().map(retry_after).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{retry}x-request-id: {}\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        id,
        body.len()
    );
    [head.as_bytes(), &body].concat()
}

fn retry_after(wait: Duration) -> String {
    format!("retry-after: {}\r\n", wait.as_secs().max(1))
}

fn holds(head: &[u8], wanted: &[u8]) -> bool {
    head.windows(wanted.len()).any(|window| window.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 1))
    }

    #[test]
    fn a_bare_refusal_becomes_an_error_with_a_body() {
        let bare = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        let whole = String::from_utf8(instead_of(bare, peer()).unwrap()).unwrap();
        let (head, body) = whole.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 400 Bad Request\r\n")
                && head.contains(&format!("content-length: {}", body.len())),
            "{head}"
        );
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["error"]["type"], "invalid_request_error");
    }

    #[test]
    fn what_somebody_answered_goes_out_as_it_is() {
        for bytes in [
            "HTTP/1.1 400 Bad Request\r\nx-request-id: 1\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}",
            "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "data: HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n",
            "",
        ] {
            assert_eq!(instead_of(bytes.as_bytes(), peer()), None, "{bytes}");
        }
    }
}
