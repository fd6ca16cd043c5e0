//! A WebSocket to a session of another gateway: once both sides have switched, bytes go through as they are. The other
//! gateway speaks the protocol, watches the key and counts what the client sends.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio_util::task::TaskTracker;

pub(super) fn is_upgrade(headers: &HeaderMap) -> bool {
    headers.get(header::UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Takes keys and tickets out of the protocols that a browser offers: they have been checked.
pub(super) fn hide_key(headers: &mut HeaderMap) {
    let offered: Vec<String> = headers
        .get_all(header::SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|name| !name.starts_with("bearer.") && !name.starts_with("ticket."))
        .map(str::to_owned)
        .collect();
    headers.remove(header::SEC_WEBSOCKET_PROTOCOL);
    if !offered.is_empty()
        && let Ok(value) = HeaderValue::from_str(&offered.join(", "))
    {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, value);
    }
}

/// The other gateway's answer to the client. Where it has switched, the two connections are joined once the client has too.
pub(super) fn switch(tasks: &TaskTracker, client: OnUpgrade, mut answer: Response) -> Response {
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return answer;
    }
    let peer = hyper::upgrade::on(&mut answer);
    tasks.spawn(async move {
        match tokio::try_join!(client, peer) {
            Ok((client, peer)) => {
                let (mut client, mut peer) = (TokioIo::new(client), TokioIo::new(peer));
                if let Err(failure) = copy_bidirectional(&mut client, &mut peer).await {
                    tracing::debug!(%failure, "a WebSocket to another gateway broke off");
                }
            }
            Err(failure) => tracing::debug!(%failure, "a connection was gone before it became a WebSocket"),
        }
    });
    answer.map(|_| Body::empty())
}
