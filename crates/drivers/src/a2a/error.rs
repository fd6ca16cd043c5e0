//! What can go wrong between us and an A2A server, as a failure that every front end can render.

use std::time::Duration;

use gembridge_core::model::{Failure, FailureKind};

/// When an agent that cannot be reached is worth another attempt.
const RETRY: Duration = Duration::from_secs(5);
/// No such task.
const TASK_NOT_FOUND: i64 = -32001;
const INVALID_REQUEST: i64 = -32600;
const UNSUPPORTED: i64 = -32004;

#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error("it cannot be reached at `{address}`: {reason}")]
    Unreached { address: String, reason: String },
    #[error("it did not answer within {0:?}")]
    Silent(Duration),
    /// `body` is what it said, without secrets and cut.
    #[error("it answered with HTTP status {status}: {body}")]
    Status { status: u16, body: String },
    #[error("its answer broke off: {0}")]
    Cut(String),
    #[error("its answer cannot be read: {0}")]
    Unread(String),
    #[error("{message} ({code})")]
    Refused { code: i64, message: String },
}

impl Trouble {
    /// The server does not have the task, or the task takes no further message.
    pub fn has_lost_the_task(&self) -> bool {
        match self {
            Self::Refused { code: TASK_NOT_FOUND, .. } => true,
            Self::Refused { code: INVALID_REQUEST | UNSUPPORTED, message } => message.contains("terminal"),
            _ => false,
        }
    }

    pub fn failure(&self, agent: &str) -> Failure {
        let kind = match self {
            Self::Unreached { .. } => FailureKind::Unavailable { retry_after: RETRY },
            Self::Silent(_) => FailureKind::TimedOut,
            Self::Status { status: 401 | 403, .. } => FailureKind::NeedsLogin,
            Self::Status { status: 429, .. } => FailureKind::RateLimited,
            Self::Status { status, .. } => FailureKind::Refused { code: i64::from(*status) },
            Self::Cut(_) => FailureKind::Crashed,
            Self::Unread(_) => FailureKind::Protocol,
            Self::Refused { code, message } => by_words(*code, message),
        };
        Failure::new(kind, format!("agent `{agent}` failed: {self}"))
    }
}

/// What the agent said of a task that failed.
pub(super) fn failed(agent: &str, said: &str) -> Failure {
    let said = if said.is_empty() { "it gave no reason" } else { said };
    Failure::new(by_words(0, said), format!("agent `{agent}` failed: {}", cut(said)))
}

/// Providers say in words what is wrong with a request, and agents pass the words on.
fn by_words(code: i64, told: &str) -> FailureKind {
    let told = told.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| told.contains(words));
    if says(&["context window", "context length", "input token count", "prompt is too long"]) {
        FailureKind::ContextFull { code }
    } else if told.contains("model") && says(&["not found", "not_found", "does not exist", "is not supported"]) {
        FailureKind::UnknownModel { code }
    } else if says(&["quota", "rate limit", "resource_exhausted", "\"code\":429"]) {
        FailureKind::RateLimited
    } else {
        FailureKind::Refused { code }
    }
}

/// An agent may put a whole conversation into its error.
const MOST_TOLD: usize = 2_000;

fn cut(said: &str) -> String {
    if said.len() <= MOST_TOLD {
        return said.to_owned();
    }
    format!("{}…", &said[..said.floor_char_boundary(MOST_TOLD)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_the_kind_by_which_a_client_can_act() {
        let refused = |code, message: &str| Trouble::Refused { code, message: message.to_owned() };
        for (trouble, kind) in [
            (Trouble::Status { status: 500, body: "x".into() }, FailureKind::Refused { code: 500 }),
            (Trouble::Status { status: 401, body: "x".into() }, FailureKind::NeedsLogin),
            (Trouble::Status { status: 429, body: "x".into() }, FailureKind::RateLimited),
            (Trouble::Silent(RETRY), FailureKind::TimedOut),
            (refused(-32603, "model x not found"), FailureKind::UnknownModel { code: -32603 }),
            (refused(-32603, "RESOURCE_EXHAUSTED"), FailureKind::RateLimited),
        ] {
            assert_eq!(trouble.failure("a").kind, kind, "{trouble}");
        }
    }

    #[test]
    fn a_task_that_is_gone_or_over_is_told_from_other_refusals() {
        let refused = |code, message: &str| Trouble::Refused { code, message: message.to_owned() };
        assert!(refused(-32001, "Task not found: 9").has_lost_the_task());
        assert!(refused(-32600, "Task 9 is in a terminal state (canceled)").has_lost_the_task());
        assert!(refused(-32004, "the task is in a terminal state").has_lost_the_task());
        assert!(!refused(-32600, "messageId is missing").has_lost_the_task());
        assert!(!refused(-32603, "Internal error").has_lost_the_task());
    }
}
