//! How answers end.

use gembridge_core::model::{CallId, Failure, FailureKind, Outcome, Prompt, Stop, ToolReturn};

use super::demanded::Unmet;
use crate::openai::wire::FinishReason;

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::openai) enum Ending {
    /// The agent is done, and knows what it said.
    Finished(FinishReason),
    /// The agent is done, but what it keeps of this turn is not what the client has.
    Forgotten(FinishReason),
    /// We ended it; the agent still works.
    Cut(FinishReason),
    /// The agent waits for results of the client; its turn goes on with them.
    Parked(FinishReason),
    /// The agent waits, but not for this client: it gets these results and goes on.
    Refused(Vec<(CallId, ToolReturn)>),
    /// It is not what was demanded. The agent is asked once more.
    Again(Prompt),
    /// It is not what was demanded, and will not be.
    Unmet(Unmet, String),
    Failed(Failure),
}

/// The agent's word for the end, in this dialect. A bound of the agent on its own work leaves an answer that is not
/// complete, so it counts as `length`; a person who stopped the turn elsewhere wanted it to end there.
pub(super) fn ending(outcome: &Outcome) -> Ending {
    match outcome {
        Outcome::Finished(Stop::EndTurn | Stop::Other(_)) => Ending::Finished(FinishReason::Stop),
        Outcome::Finished(Stop::MaxTokens | Stop::MaxTurnRequests) => Ending::Forgotten(FinishReason::Length),
        Outcome::Finished(Stop::Refusal) => Ending::Forgotten(FinishReason::ContentFilter),
        Outcome::Cancelled => Ending::Forgotten(FinishReason::Stop),
        Outcome::Interrupted(failure) if is_full_context(failure) => Ending::Forgotten(FinishReason::Length),
        Outcome::Interrupted(failure) => Ending::Failed(failure.clone()),
    }
}

/// Providers say in words that a conversation has grown too long for the model.
fn is_full_context(failure: &Failure) -> bool {
    const WORDS: [&str; 6] = [
        "context window",
        "context length",
        "context_length_exceeded",
        "maximum number of tokens",
        "input token count",
        "prompt is too long",
    ];
    matches!(failure.kind, FailureKind::Refused { .. }) && {
        let message = failure.message.to_lowercase();
        WORDS.iter().any(|words| message.contains(words))
    }
}
