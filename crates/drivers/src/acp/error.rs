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
        code => Failure::new(FailureKind::Refused { code }, format!("agent `{agent}` failed ({code}): {told}")),
    }
}

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
