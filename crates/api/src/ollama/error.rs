//! Problems in this dialect's envelope: a text under `error`, as a response or as the last line of a stream.

use axum::response::Response;
use bytes::{BufMut as _, BytesMut};
use gembridge_core::exchange::ExchangeError;
use serde::Serialize;

use crate::dialect::{self, FieldNames};
use crate::frontend;
use crate::identity::RequestId;
use crate::problem::{Kind, Problem};

#[derive(Serialize)]
struct Envelope<'a> {
    error: &'a str,
}

/// The whole response: status, `Retry-After`, body. The guard's refusals on this frontend's routes are written by it too.
pub(super) fn response(problem: &Problem, _: &RequestId) -> Response {
    frontend::json_response(problem, json(problem))
}

/// What an exchange ended with, in this dialect's names of fields.
pub(super) fn problem(error: ExchangeError) -> Problem {
    dialect::problem(error, &NAMES)
}

pub(super) const NAMES: FieldNames = FieldNames {
    model: "model",
    tools: "tools",
    answers: "messages",
    output: "format",
    output_schema: "format",
    list_of_models: "GET /api/tags",
};

/// A name that nobody has, in the words that clients look for.
pub(super) fn no_model(name: &str) -> Problem {
    let message = format!("model '{}' not found; `GET /api/tags` lists those that are there", dialect::brief(name));
    Problem { kind: Kind::NotFound, message, param: Some("model".into()) }
}

/// The last line of a stream that cannot go on.
pub(super) fn line(out: &mut BytesMut, problem: &Problem) {
    out.put_slice(&json(problem));
    out.put_u8(b'\n');
}

fn json(problem: &Problem) -> Vec<u8> {
    serde_json::to_vec(&Envelope { error: &problem.message_with_field() }).expect("strings always serialise")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn every_problem_is_a_text_under_error() {
        let retry_after = Duration::from_secs(3);
        for (kind, status) in [
            (Kind::Invalid, 400),
            (Kind::Unauthenticated, 401),
            (Kind::Forbidden, 403),
            (Kind::NotFound, 404),
            (Kind::MethodNotAllowed, 405),
            (Kind::TooLarge, 413),
            (Kind::RateLimited { retry_after }, 429),
            (Kind::QueueFull { retry_after }, 429),
            (Kind::Provider, 429),
            (Kind::Agent, 502),
            (Kind::NoToolCall, 502),
            (Kind::NoOutput, 502),
            (Kind::Cancelled, 499),
            (Kind::Unavailable { retry_after }, 503),
            (Kind::TimedOut, 504),
            (Kind::StoreFull, 507),
            (Kind::Internal, 500),
        ] {
            let response = response(&Problem::new(kind, "it \"died\""), &RequestId::fresh());
            assert_eq!(response.status(), status);
            assert_eq!(response.headers().contains_key("retry-after"), kind.retry_after().is_some());
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, r#"{"error":"it \"died\""}"#);
        }
        let place = Problem::invalid("messages[0].role", "a message has no role");
        assert_eq!(json(&place), br#"{"error":"messages[0].role: a message has no role"}"#);
    }
}
