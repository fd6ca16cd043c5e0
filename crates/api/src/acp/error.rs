//! Refusals as JSON-RPC errors. The one table of codes of this frontend.

use gembridge_core::error::Error;
use gembridge_core::model::{Failure, FailureKind};
use serde_json::{Value, json};

use crate::jsonrpc::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND};
use crate::problem::{Kind, Problem};

/// A login is missing, or the agent cannot be had now: another attempt may succeed.
pub const UNAVAILABLE: i64 = -32000;
/// No such session, or none that this key may see.
pub const NOT_FOUND: i64 = -32002;
pub const CANCELLED: i64 = -32800;

/// A request that gets no result.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub code: i64,
    pub message: String,
    pub data: Value,
}

impl Refusal {
    pub fn new(code: i64, name: &str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: json!({ "code": name }) }
    }

    pub fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, "invalid_params", message)
    }

    pub fn request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, "invalid_request", message)
    }

    pub fn method(method: &str) -> Self {
        let shown: String = method.chars().take(64).flat_map(char::escape_default).collect();
        Self::new(METHOD_NOT_FOUND, "method_not_found", format!("there is no method `{shown}` here"))
    }

    pub fn session(id: &str) -> Self {
        let shown: String = id.chars().take(64).flat_map(char::escape_default).collect();
        Error::UnknownSession(shown).into()
    }

    pub fn busy(message: impl Into<String>) -> Self {
        Self { code: UNAVAILABLE, message: message.into(), data: json!({ "code": "busy", "retryAfterMs": 1000 }) }
    }

    pub fn cancelled() -> Self {
        Self::new(CANCELLED, "cancelled", "the request was cancelled")
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        let code = match problem.kind {
            Kind::Invalid | Kind::TooLarge | Kind::WrongMediaType | Kind::MethodNotAllowed => INVALID_PARAMS,
            Kind::NotFound => NOT_FOUND,
            Kind::Unauthenticated
            | Kind::Forbidden
            | Kind::RateLimited { .. }
            | Kind::QueueFull { .. }
            | Kind::Provider
            | Kind::Unavailable { .. } => UNAVAILABLE,
            _ => INTERNAL_ERROR,
        };
        let mut data = json!({ "code": problem.kind.code() });
        if let Some(wait) = problem.kind.retry_after() {
            data["retryAfterMs"] = json!(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        }
        Self { code, message: problem.message, data }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Agent(failure) => failure.into(),
            other => Problem::from(other).into(),
        }
    }
}

impl From<Failure> for Refusal {
    /// What the agent itself said keeps the agent's own code.
    fn from(failure: Failure) -> Self {
        let kind = failure.kind;
        let refusal = Self::from(Problem::from(failure));
        match kind {
            FailureKind::Refused { code } | FailureKind::UnknownModel { code } | FailureKind::ContextFull { code }
                if code != 0 =>
            {
                Self { code, ..refusal }
            }
            FailureKind::NeedsLogin => Self { code: UNAVAILABLE, data: json!({ "code": "auth_required" }), ..refusal },
            _ => refusal,
        }
    }
}
