//! Problems in this dialect's envelope: as a response, or as a message of a socket.

use axum::response::Response;
use gembridge_core::exchange::ExchangeError;
use serde::Serialize;

use super::decode::SCHEMA_PLACE;
use crate::dialect::{self, FieldNames};
use crate::frontend;
use crate::identity::RequestId;
use crate::problem::{Kind, Problem};

#[derive(Serialize)]
struct Envelope<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
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
    frontend::json_response(problem, json(problem, id, None))
}

/// A problem as a message of a socket.
pub(super) fn message(problem: &Problem, id: &RequestId) -> Vec<u8> {
    json(problem, id, Some(problem.kind.status().as_u16()))
}

/// What an exchange ended with, in this dialect's names of fields.
pub(super) fn problem(error: ExchangeError) -> Problem {
    dialect::problem(error, &NAMES)
}

pub(super) const NAMES: FieldNames = FieldNames {
    model: "model",
    tools: "tools",
    answers: "input",
    output: "text.format",
    output_schema: SCHEMA_PLACE,
    list_of_models: "GET /v1/models",
};

/// The field that names the response before.
pub(super) const PREVIOUS: &str = "previous_response_id";

pub(super) fn unknown_previous(id: &str) -> Problem {
    let message = format!(
        "the response `{}` is not known; it was not stored, or was deleted, or is another key's. Send the whole input instead",
        dialect::brief(id)
    );
    Problem::invalid(PREVIOUS, message)
}

pub(super) fn unknown_conversation(id: &str) -> Problem {
    let message = format!("there is no conversation `{}`; `POST /v1/conversations` makes one", dialect::brief(id));
    Problem { kind: Kind::NotFound, message, param: Some("conversation".into()) }
}

pub(super) fn unknown_response(id: &str) -> Problem {
    let message = format!(
        "there is no response `{}`; it was not stored, or was deleted, or is another key's",
        dialect::brief(id)
    );
    Problem { kind: Kind::NotFound, message, param: Some("response_id".into()) }
}

fn json(problem: &Problem, id: &RequestId, status: Option<u16>) -> Vec<u8> {
    let error = Error {
        message: &problem.message,
        r#type: dialect::error_type(problem.kind),
        code: code(problem),
        param: problem.param.as_deref(),
        request_id: *id,
    };
    let envelope = Envelope { r#type: status.map(|_| "error"), status, error };
    serde_json::to_vec(&envelope).expect("strings always serialise")
}

/// The kind's own name, but where clients know another by which they send everything again.
fn code(problem: &Problem) -> &'static str {
    match (problem.kind, problem.param.as_deref()) {
        (Kind::Invalid, Some(PREVIOUS)) => "previous_response_not_found",
        (kind, _) => kind.code(),
    }
}
