//! What goes wrong, by the names that both versions have for it, and the answers of the guard in this dialect's envelope.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use gembridge_core::error::Error;
use gembridge_core::exchange::ExchangeError;
use serde_json::{Value, json};

use crate::frontend;
use crate::identity::RequestId;
use crate::jsonrpc;
use crate::problem::{Kind, Problem};

/// A call that gets no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    pub reason: Reason,
    /// What happened, and the way out.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Unreadable,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    TaskNotFound,
    TaskNotCancelable,
    PushNotSupported,
    UnsupportedOperation,
    ContentTypeNotSupported,
    VersionNotSupported,
    /// Everything that other APIs have too: a full queue, an agent that cannot be had, a disk without room.
    Gateway(Kind),
}

impl Fault {
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// A problem that no client sees where the request can be passed on to the gateway that has the session.
    pub fn elsewhere(&self) -> Option<Problem> {
        match self.reason {
            Reason::Gateway(kind @ Kind::Elsewhere { .. }) => Some(Problem::new(kind, self.message.clone())),
            _ => None,
        }
    }

    pub fn params(message: impl Into<String>) -> Self {
        Self::new(Reason::InvalidParams, message)
    }

    /// The same words for a task that is not there and for one of another key.
    pub fn task(id: &str) -> Self {
        let shown: String = id.chars().take(80).flat_map(char::escape_default).collect();
        Self::new(
            Reason::TaskNotFound,
            format!("the task `{shown}` was not found; it may be gone, or belong to another key"),
        )
    }
}

impl Reason {
    pub fn code(self) -> i64 {
        match self {
            Self::Unreadable => jsonrpc::PARSE_ERROR,
            Self::InvalidRequest => jsonrpc::INVALID_REQUEST,
            Self::MethodNotFound => jsonrpc::METHOD_NOT_FOUND,
            Self::InvalidParams | Self::Gateway(Kind::Invalid) => jsonrpc::INVALID_PARAMS,
            Self::TaskNotFound => -32001,
            Self::TaskNotCancelable => -32002,
            Self::PushNotSupported => -32003,
            Self::UnsupportedOperation => -32004,
            Self::ContentTypeNotSupported | Self::Gateway(Kind::WrongMediaType) => -32005,
            Self::VersionNotSupported => -32009,
            Self::Gateway(Kind::Internal) => jsonrpc::INTERNAL_ERROR,
            Self::Gateway(_) => SERVER_ERROR,
        }
    }

    /// The name of it in `ErrorInfo`.
    pub fn name(self) -> String {
        match self {
            Self::Unreadable => "PARSE_ERROR".to_owned(),
            Self::InvalidRequest => "INVALID_REQUEST".to_owned(),
            Self::MethodNotFound => "METHOD_NOT_FOUND".to_owned(),
            Self::InvalidParams => "INVALID_PARAMS".to_owned(),
            Self::TaskNotFound => "TASK_NOT_FOUND".to_owned(),
            Self::TaskNotCancelable => "TASK_NOT_CANCELABLE".to_owned(),
            Self::PushNotSupported => "PUSH_NOTIFICATION_NOT_SUPPORTED".to_owned(),
            Self::UnsupportedOperation => "UNSUPPORTED_OPERATION".to_owned(),
            Self::ContentTypeNotSupported | Self::Gateway(Kind::WrongMediaType) => {
                "CONTENT_TYPE_NOT_SUPPORTED".to_owned()
            }
            Self::VersionNotSupported => "VERSION_NOT_SUPPORTED".to_owned(),
            Self::Gateway(kind) => kind.code().to_uppercase(),
        }
    }

    /// The status of the same in the binding that speaks plain HTTP.
    pub fn status(self) -> StatusCode {
        match self {
            Self::TaskNotFound | Self::MethodNotFound => StatusCode::NOT_FOUND,
            Self::TaskNotCancelable => StatusCode::CONFLICT,
            Self::ContentTypeNotSupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Gateway(kind) => kind.status(),
            Self::Unreadable
            | Self::InvalidRequest
            | Self::InvalidParams
            | Self::PushNotSupported
            | Self::UnsupportedOperation
            | Self::VersionNotSupported => StatusCode::BAD_REQUEST,
        }
    }

    fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Gateway(kind) => kind.retry_after(),
            _ => None,
        }
    }
}

/// The code of errors that the protocol has no own for.
const SERVER_ERROR: i64 = -32000;

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Self { reason: Reason::Gateway(problem.kind), message: problem.message }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::NotParked(_) | Error::NotAsked => Self::params(error.to_string()),
            other => Problem::from(other).into(),
        }
    }
}

impl From<ExchangeError> for Fault {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::Core(error) => error.into(),
            other => Self::params(other.to_string()),
        }
    }
}

/// The details of an error as `google.rpc` writes them.
pub fn details(fault: &Fault) -> Value {
    let mut info = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": fault.reason.name(),
        "domain": "a2a-protocol.org",
    });
    if let Some(wait) = fault.reason.retry_after() {
        info["metadata"] = json!({ "retryAfterSeconds": wait.as_secs().max(1).to_string() });
    }
    json!([info])
}

/// What the guard refuses on these routes, before a version or an id is known.
pub fn response(problem: &Problem, id: &RequestId) -> Response {
    let fault = Fault { reason: Reason::Gateway(problem.kind), message: problem.message.clone() };
    let mut data = details(&fault);
    data[0]["metadata"]["requestId"] = json!(id);
    let error = json!({ "code": fault.reason.code(), "message": fault.message, "data": data });
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
    frontend::json_response(problem, body.to_string().into_bytes())
}
