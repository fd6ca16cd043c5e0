//! Problems in this dialect's envelope: as a response, or as an event of a stream that has begun. The one table of its
//! types.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use bytes::BytesMut;
use gembridge_core::exchange::ExchangeError;
use serde::Serialize;

use crate::dialect::{self, FieldNames};
use crate::frontend;
use crate::identity::RequestId;
use crate::problem::{Kind, Problem};
use crate::sse;

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
/// Says whether the same request may be sent again; its clients obey it.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

#[derive(Serialize)]
struct Envelope<'a> {
    r#type: &'static str,
    error: Error<'a>,
    request_id: RequestId,
}

#[derive(Serialize)]
struct Error<'a> {
    r#type: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
}

#[derive(Serialize)]
struct Details {
    error_code: &'static str,
}

/// Why a conversation cannot be gone on with by the id of a message. Its clients know these codes, and send everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadRefusal {
    NotFound,
    AlreadyContinued,
}

/// The field whose problems are refusals of threads.
const THREAD: &str = "thread";

impl From<ThreadRefusal> for Problem {
    fn from(refusal: ThreadRefusal) -> Self {
        let (kind, message) = match refusal {
            ThreadRefusal::NotFound => (Kind::NotFound, "no thread is kept under this message id; send all of it"),
            ThreadRefusal::AlreadyContinued => (Kind::Invalid, "the thread went on after this message; send all of it"),
        };
        Self { kind, message: message.to_owned(), param: Some(THREAD.to_owned()) }
    }
}

/// The whole response: status, `Retry-After`, body. The guard's refusals on this frontend's routes are written by it too.
pub(super) fn response(problem: &Problem, id: &RequestId) -> Response {
    let mut response = frontend::json_response(problem, json(problem, id));
    if problem.kind == Kind::StoreFull {
        // What the agent did could not be kept.
        response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    name(&mut response, id);
    response
}

/// The number of the request, under the name that this dialect has for it.
pub(super) fn name(response: &mut Response, id: &RequestId) {
    if let Ok(id) = HeaderValue::from_str(id.text(&mut [0; RequestId::LENGTH])) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
}

/// What an exchange ended with, in this dialect's names of fields.
pub(super) fn problem(error: ExchangeError) -> Problem {
    dialect::problem(error, &NAMES)
}

pub(super) const NAMES: FieldNames = FieldNames {
    model: "model",
    tools: "tools",
    answers: "messages",
    output: "output_config.format",
    output_schema: "output_config.format.schema",
    list_of_models: "GET /v1/models",
};

/// The last event of a stream that cannot go on.
pub(super) fn event(out: &mut BytesMut, problem: &Problem, id: &RequestId) {
    sse::named(out, "error", &json(problem, id));
}

fn json(problem: &Problem, id: &RequestId) -> Vec<u8> {
    let error_code = match (problem.kind, problem.param.as_deref()) {
        (Kind::NotFound, Some(THREAD)) => Some("thread_not_found"),
        (Kind::Invalid, Some(THREAD)) => Some("thread_already_continued"),
        _ => None,
    };
    let details = error_code.map(|error_code| Details { error_code });
    let error = Error { r#type: class(problem.kind), message: &problem.message_with_field(), details };
    serde_json::to_vec(&Envelope { r#type: "error", error, request_id: *id }).expect("strings always serialise")
}

fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Invalid | Kind::MethodNotAllowed | Kind::WrongMediaType => "invalid_request_error",
        Kind::TooLarge => "request_too_large",
        Kind::Unauthenticated => "authentication_error",
        Kind::Forbidden => "permission_error",
        Kind::NotFound => "not_found_error",
        Kind::RateLimited { .. } | Kind::QueueFull { .. } | Kind::Provider => "rate_limit_error",
        Kind::Unavailable { .. } | Kind::Elsewhere { .. } => "overloaded_error",
        Kind::TimedOut => "timeout_error",
        Kind::Agent | Kind::NoToolCall | Kind::NoOutput | Kind::Cancelled | Kind::StoreFull | Kind::Internal => {
            "api_error"
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::BodyExt as _;

    use super::*;

    async fn shown(response: Response) -> (u16, bool, String) {
        let retries = !response.headers().contains_key("x-should-retry");
        assert!(response.headers().contains_key("request-id"));
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, retries, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn every_problem_has_its_type_and_says_whether_to_send_it_again() {
        let retry_after = Duration::from_secs(3);
        let id = RequestId::fresh();
        for (kind, status, class, retries) in [
            (Kind::Invalid, 400, "invalid_request_error", true),
            (Kind::Unauthenticated, 401, "authentication_error", true),
            (Kind::Forbidden, 403, "permission_error", true),
            (Kind::NotFound, 404, "not_found_error", true),
            (Kind::MethodNotAllowed, 405, "invalid_request_error", true),
            (Kind::TooLarge, 413, "request_too_large", true),
            (Kind::WrongMediaType, 415, "invalid_request_error", true),
            (Kind::RateLimited { retry_after }, 429, "rate_limit_error", true),
            (Kind::QueueFull { retry_after }, 429, "rate_limit_error", true),
            (Kind::Provider, 429, "rate_limit_error", true),
            (Kind::Agent, 502, "api_error", false),
            (Kind::NoToolCall, 502, "api_error", false),
            (Kind::NoOutput, 502, "api_error", false),
            (Kind::Cancelled, 499, "api_error", false),
            (Kind::Unavailable { retry_after }, 503, "overloaded_error", true),
            (Kind::TimedOut, 504, "timeout_error", false),
            (Kind::StoreFull, 507, "api_error", false),
            (Kind::Internal, 500, "api_error", true),
        ] {
            let body = format!(
                r#"{{"type":"error","error":{{"type":"{class}","message":"it \"died\""}},"request_id":"{id}"}}"#
            );
            let shown = shown(response(&Problem::new(kind, "it \"died\""), &id)).await;
            assert_eq!(shown, (status, retries, body));
        }
    }

    #[tokio::test]
    async fn a_thread_is_refused_by_the_codes_that_its_clients_know() {
        let id = RequestId::fresh();
        for (refusal, status, code) in [
            (ThreadRefusal::NotFound, 404, "thread_not_found"),
            (ThreadRefusal::AlreadyContinued, 400, "thread_already_continued"),
        ] {
            let (found, _, body) = shown(response(&refusal.into(), &id)).await;
            assert_eq!(found, status);
            assert!(body.contains(&format!(r#""details":{{"error_code":"{code}"}}"#)), "{body}");
        }
    }
}
