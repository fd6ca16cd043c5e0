//! How a turn ended. Every turn has exactly one of these, whatever happened to it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The agent said that it is done.
    Finished(Stop),
    /// Somebody cancelled it and the agent obeyed, or was ended because it did not.
    Cancelled,
    /// Something broke. What came before is kept and marked as partial.
    Interrupted(Failure),
}

/// Why the agent stopped, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
    /// A reason that we do not know, as the agent spelled it.
    Other(Arc<str>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub kind: FailureKind,
    /// What happened and the way out, in one sentence.
    pub message: String,
    /// The end of what the agent wrote to its standard error. For the log and local commands only: agents dump
    /// prompts there.
    pub stderr_tail: Option<String>,
}

/// What went wrong, by what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// The agent answered with an error of its own; `code` is the agent's.
    Refused { code: i64 },
    /// The agent's provider does not have the model; `code` is the agent's.
    UnknownModel { code: i64 },
    /// The conversation is too long for the model; `code` is the agent's.
    ContextFull { code: i64 },
    /// The agent's provider asks to slow down.
    RateLimited,
    /// The agent's process ended.
    Crashed,
    /// The agent broke its protocol.
    Protocol,
    /// The agent wants a login that it does not have.
    NeedsLogin,
    /// Whoever asked may not have this agent, or not like this.
    Forbidden,
    /// The agent was silent for too long, or the turn took too long.
    TimedOut,
    /// No agent can be had now; a later attempt may succeed.
    Unavailable { retry_after: Duration },
    /// Whoever asked has as much as it may have at once.
    QuotaReached { retry_after: Duration },
    /// A bound of ours was reached.
    LimitReached,
    /// What must be kept could not be written.
    StoreFailed,
    /// The agent cannot do what was asked.
    #[serde(alias = "ToolsUnread")]
    Unsupported,
    /// The gateway is going down.
    ShuttingDown,
    /// Our own fault.
    Internal,
}

impl Failure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), stderr_tail: None }
    }

    #[must_use]
    pub fn with_stderr(mut self, tail: String) -> Self {
        if !tail.is_empty() {
            self.stderr_tail = Some(tail);
        }
        self
    }
}
