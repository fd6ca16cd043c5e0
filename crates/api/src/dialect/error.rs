//! What an exchange ended with, as a problem of this dialect.

use gembridge_core::exchange::{ExchangeError, Field};

use super::shortened;
use crate::problem::{Kind, Problem};

/// What a dialect calls the fields that an exchange may find fault with.
pub(crate) struct FieldNames {
    pub model: &'static str,
    pub tools: &'static str,
    pub answers: &'static str,
    pub output: &'static str,
    pub output_schema: &'static str,
    /// Where a client finds the models that there are.
    pub list_of_models: &'static str,
}

/// What an exchange ended with, in these names of fields.
pub(crate) fn problem(error: ExchangeError, names: &FieldNames) -> Problem {
    let message = error.to_string();
    let about = |kind, param: &str| Problem { kind, message: message.clone(), param: Some(param.to_owned()) };
    match error {
        ExchangeError::Core(error) => error.into(),
        ExchangeError::Invalid { field: Field::Model, .. } => about(Kind::Invalid, names.model),
        ExchangeError::Invalid { field: Field::Tools, .. } => about(Kind::Invalid, names.tools),
        ExchangeError::Invalid { field: Field::Answers, .. } => about(Kind::Invalid, names.answers),
        ExchangeError::Invalid { field: Field::Output, .. } => about(Kind::Invalid, names.output),
        ExchangeError::Invalid { field: Field::OutputSchema, .. } => {
            Problem { message: shortened(&message), ..about(Kind::Invalid, names.output_schema) }
        }
        ExchangeError::UnknownModel(_) => {
            let message = format!("{message}; `{}` lists those that do", names.list_of_models);
            Problem { message, ..about(Kind::NotFound, names.model) }
        }
        ExchangeError::NoToolCall(_) => Problem::new(Kind::NoToolCall, message),
        ExchangeError::NoOutput(_) => Problem::new(Kind::NoOutput, message),
        ExchangeError::Cancelled => Problem::new(Kind::Cancelled, message),
    }
}

/// The `type` of an error, for the dialects whose errors have one beside their `code`.
pub(crate) fn error_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Invalid | Kind::MethodNotAllowed | Kind::TooLarge | Kind::WrongMediaType => "invalid_request_error",
        Kind::Unauthenticated => "authentication_error",
        Kind::Forbidden => "permission_error",
        Kind::NotFound => "not_found_error",
        Kind::RateLimited { .. } | Kind::QueueFull { .. } | Kind::Provider => "rate_limit_exceeded",
        Kind::Agent
        | Kind::NoToolCall
        | Kind::NoOutput
        | Kind::Cancelled
        | Kind::Unavailable { .. }
        | Kind::TimedOut
        | Kind::StoreFull
        | Kind::Elsewhere { .. }
        | Kind::Internal => "api_error",
    }
}
