//! Problems in this dialect's envelope: as a response, or as an event of a stream that has begun. The one table of its
//! types.

use axum::response::Response;
use bytes::BytesMut;
use gembridge_core::exchange::ExchangeError;
use serde::Serialize;

use super::decode::SCHEMA_PLACE;
use crate::dialect::{self, FieldNames};
use crate::frontend;
use crate::identity::RequestId;
use crate::problem::Problem;
use crate::sse;

#[derive(Serialize)]
struct Envelope<'a> {
    error: Error<'a>,
}

#[derive(Serialize)]
struct Error<'a> {
    message: &'a str,
    r#type: &'static str,
    code: &'static str,
    param: Option<&'a str>,
    request_id: RequestId,
}

/// The whole response: status, `Retry-After`, body. The guard's refusals on this frontend's routes are written by it too.
pub(super) fn response(problem: &Problem, id: &RequestId) -> Response {
    frontend::json_response(problem, json(problem, id))
}

/// What an exchange ended with, in this dialect's names of fields.
pub(super) fn problem(error: ExchangeError) -> Problem {
    dialect::problem(error, &NAMES)
}

pub(super) const NAMES: FieldNames = FieldNames {
    model: "model",
    tools: "tools",
    answers: "n",
    output: "response_format",
    output_schema: SCHEMA_PLACE,
    list_of_models: "GET /v1/models",
};

/// The last event of a stream that cannot go on.
pub(super) fn event(out: &mut BytesMut, problem: &Problem, id: &RequestId) {
    sse::data(out, &json(problem, id));
}

fn json(problem: &Problem, id: &RequestId) -> Vec<u8> {
    let error = Error {
        message: &problem.message,
        r#type: dialect::error_type(problem.kind),
        code: problem.kind.code(),
        param: problem.param.as_deref(),
        request_id: *id,
    };
    serde_json::to_vec(&Envelope { error }).expect("strings always serialise")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::BodyExt as _;

    use super::*;
    use crate::problem::Kind;

    #[tokio::test]
    async fn the_envelope_is_byte_for_byte_what_clients_of_this_dialect_know() {
        let id = RequestId::fresh();
        let busy = Kind::RateLimited { retry_after: Duration::from_millis(1_500) };
        for (problem, status, retry_after, error) in [
            (
                Problem::invalid("messages[0].role", "no `role`"),
                400,
                None,
                r#""message":"no `role`","type":"invalid_request_error","code":"invalid_request","param":"messages[0].role""#,
            ),
            (
                Problem::new(busy, "wait"),
                429,
                Some("2"),
                r#""message":"wait","type":"rate_limit_exceeded","code":"rate_limit_exceeded","param":null"#,
            ),
            (
                Problem::new(Kind::Agent, "it \"died\""),
                502,
                None,
                r#""message":"it \"died\"","type":"api_error","code":"agent_error","param":null"#,
            ),
        ] {
            let response = response(&problem, &id);
            assert_eq!(response.status(), status);
            assert_eq!(response.headers()["content-type"], "application/json");
            assert_eq!(response.headers().get("retry-after").map(|value| value.to_str().unwrap()), retry_after);
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, format!(r#"{{"error":{{{error},"request_id":"{id}"}}}}"#));
        }
    }
}
