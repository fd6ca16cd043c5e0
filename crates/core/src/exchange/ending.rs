//! How answers end.

use super::required_output::Unmet;
use super::sink::Finish;
use crate::model::{CallId, Failure, FailureKind, Outcome, Prompt, Stop, ToolReturn};

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The agent is done, and knows what it said.
    Finished(Finish),
    /// The agent is done, but what it keeps of this turn is not what the client has.
    NotResumable(Finish),
    /// The turn was cancelled by another client: the answer is incomplete.
    Cancelled,
    /// We ended it; the agent still works.
    Cut(Finish),
    /// The agent waits for results of the client; its turn goes on with them.
    Parked(Finish),
    /// The agent waits, but not for this client: it gets these results and goes on.
    Refused(Vec<(CallId, ToolReturn)>),
    /// It is not what was demanded. The agent is asked once more.
    Again(Prompt),
    /// It is not what was demanded, and will not be.
    Unmet(Unmet, String),
    Failed(Failure),
}

/// The agent's word for the end, for a client. A bound of the agent on its own work leaves an answer that is not
/// complete, so it counts as too long. A turn that was cancelled elsewhere is reported as an error: a
/// program should not go on with its text.
pub(super) fn ending(outcome: &Outcome) -> Ending {
    match outcome {
        Outcome::Finished(Stop::EndTurn | Stop::Other(_)) => Ending::Finished(Finish::Stop),
        Outcome::Finished(Stop::MaxTokens | Stop::MaxTurnRequests) => Ending::NotResumable(Finish::Length),
        Outcome::Finished(Stop::Refusal) => Ending::NotResumable(Finish::ContentFilter),
        Outcome::Cancelled => Ending::Cancelled,
        Outcome::Interrupted(Failure { kind: FailureKind::ContextFull { .. }, .. }) => {
            Ending::NotResumable(Finish::Length)
        }
        Outcome::Interrupted(failure) => Ending::Failed(failure.clone()),
    }
}
