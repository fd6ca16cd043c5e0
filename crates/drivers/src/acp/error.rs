//! What an agent calls an error, as a failure that every frontend can render.

use gembridge_core::model::{Failure, FailureKind};

use super::wire::RpcError;
use crate::profile::Quirk;

const METHOD_NOT_FOUND: i64 = -32601;
const AUTH_REQUIRED: i64 = -32000;

/// An error response of the agent.
pub(super) fn failure(agent: &str, quirks: &[Quirk], error: &RpcError) -> Failure {
    let told = told(error);
    let status = quirks.contains(&Quirk::HttpStatusAsErrorCode).then_some(error.code);
    match error.code {
        AUTH_REQUIRED => Failure::new(FailureKind::NeedsLogin, format!("agent `{agent}` is not logged in: {told}")),
        code @ METHOD_NOT_FOUND => {
            Failure::new(FailureKind::Refused { code }, format!("agent `{agent}` does not know this method: {told}"))
        }
        code if status == Some(429) => Failure::new(
            FailureKind::RateLimited,
            format!("the provider of agent `{agent}` asks to slow down ({code}): {told}"),
        ),
        code => Failure::new(kind(code, &told), format!("agent `{agent}` failed ({code}): {told}")),
    }
}

/// Providers say in words what is wrong with a request, and agents pass the words on.
fn kind(code: i64, told: &str) -> FailureKind {
    let told = told.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| told.contains(words));
    if says(&CONTEXT_FULL) {
        return FailureKind::ContextFull { code };
    }
    if told.contains("model") && says(&UNKNOWN_MODEL) {
        return FailureKind::UnknownModel { code };
    }
    FailureKind::Refused { code }
}

const CONTEXT_FULL: [&str; 6] = [
    "context window",
    "context length",
    "context_length_exceeded",
    "maximum number of tokens",
    "input token count",
    "prompt is too long",
];

const UNKNOWN_MODEL: [&str; 5] = ["not found", "not_found", "is not supported", "does not exist", "unknown model"];

/// The agent's own words, with the detail that some agents put beside the message.
fn told(error: &RpcError) -> String {
    #[derive(serde::Deserialize)]
    struct Detailed {
        details: String,
    }
    let details = error.data.as_ref().and_then(|data| serde_json::from_str::<Detailed>(data.get()).ok());
    let message = error.message.trim_end_matches('.');
    let mut told = match details {
        Some(detailed) if message.is_empty() => detailed.details,
        Some(detailed) => format!("{message}: {}", detailed.details),
        None => message.to_owned(),
    };
    if told.len() > MOST_TOLD {
        told.truncate(told.floor_char_boundary(MOST_TOLD));
        told.push('…');
    }
    told
}

/// An agent may put a whole conversation into its error.
const MOST_TOLD: usize = 2_000;

pub(super) fn protocol(agent: &str, what: impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Protocol, format!("agent `{agent}` broke the protocol: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_providers_have_kinds() {
        let unknown = FailureKind::UnknownModel { code: 500 };
        let full = FailureKind::ContextFull { code: 500 };
        let refused = FailureKind::Refused { code: 500 };
        for (told, expected) in [
            ("models/gone is not found for API version v1beta", unknown),
            ("The model `x` does not exist", unknown),
            ("not_found_error: model: claude-x", unknown),
            ("This model's maximum context length is 8192 tokens", full),
            ("the input token count (1048600) exceeds the maximum number of tokens allowed", full),
            ("Prompt is too long", full),
            ("file not found", refused),
            ("the model is overloaded", refused),
        ] {
            assert_eq!(kind(500, told), expected, "{told}");
        }
    }
}
