//! What is printed: one line for each thing that happened, and a result at the end.

use std::path::PathBuf;

use gembridge_core::log::LogEntry;
use gembridge_core::model::{Failure, FailureKind, Outcome, Stop, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fold::{Context, Fold};
use crate::message::{UnifiedMessage, UnifiedUsage};

/// One line of `stream-json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    System(Notice),
    Assistant {
        message: UnifiedMessage,
        session_id: String,
    },
    User {
        message: UnifiedMessage,
        session_id: String,
    },
    /// A piece of a block that is still being written; the whole message follows.
    Delta(Delta),
    Result(RunResult),
}

/// Something beside the messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum Notice {
    /// The first line.
    Init(Init),
    Plan {
        entries: Vec<Value>,
        session_id: String,
    },
    Mode {
        mode: String,
        session_id: String,
    },
    Model {
        model: String,
        session_id: String,
    },
    Title {
        title: String,
        session_id: String,
    },
    PermissionRequest {
        tool_use_id: String,
        options: Vec<Value>,
        session_id: String,
    },
    PermissionAnswer {
        tool_use_id: String,
        allowed: bool,
        session_id: String,
    },
    /// The agent is another process now and remembers nothing.
    AgentReplaced {
        reason: String,
        session_id: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Init {
    pub session_id: String,
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
}

impl From<Init> for Line {
    fn from(init: Init) -> Self {
        Self::System(Notice::Init(init))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    pub session_id: String,
    pub message_id: String,
    /// Which block of the message.
    pub index: usize,
    pub delta: DeltaBody,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DeltaBody {
    TextDelta { text: String },
    ThinkingDelta { thinking: String },
}

/// How a turn ended: the last line of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    pub subtype: Subtype,
    pub is_error: bool,
    /// The answer: the last text of the turn.
    pub result: String,
    pub stop_reason: Option<String>,
    pub duration_ms: u64,
    pub usage: TurnUsage,
    pub session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subtype {
    Success,
    Error,
    Cancelled,
}

/// Tokens of the turn; what the agent did not tell is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnUsage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_creation_input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_input_tokens: Option<u64>,
}

impl From<TurnUsage> for UnifiedUsage {
    fn from(usage: TurnUsage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            thought_tokens: usage.thought_tokens,
            total_tokens: usage.total_tokens,
            cache_creation_tokens: usage.cache_creation_input_tokens,
            cache_read_tokens: usage.cache_read_input_tokens,
        }
    }
}

impl From<&Usage> for TurnUsage {
    fn from(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.input,
            output_tokens: usage.output,
            thought_tokens: usage.thought,
            total_tokens: usage.total,
            cache_creation_input_tokens: usage.cached_write,
            cache_read_input_tokens: usage.cached_read,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    pub kind: String,
    pub message: String,
    /// The agent's own code, where it answered with an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl From<&Failure> for RunError {
    fn from(failure: &Failure) -> Self {
        let (mut code, mut retry_after_ms) = (None, None);
        let kind = match failure.kind {
            FailureKind::Refused { code: agents } => {
                code = Some(agents);
                "refused"
            }
            FailureKind::UnknownModel { code: agents } => {
                code = Some(agents);
                "unknown_model"
            }
            FailureKind::ContextFull { code: agents } => {
                code = Some(agents);
                "context_full"
            }
            FailureKind::Unavailable { retry_after } => {
                retry_after_ms = u64::try_from(retry_after.as_millis()).ok();
                "unavailable"
            }
            FailureKind::QuotaReached { retry_after } => {
                retry_after_ms = u64::try_from(retry_after.as_millis()).ok();
                "quota_reached"
            }
            FailureKind::RateLimited => "rate_limited",
            FailureKind::Crashed => "crashed",
            FailureKind::Protocol => "protocol",
            FailureKind::NeedsLogin => "needs_login",
            FailureKind::Forbidden => "forbidden",
            FailureKind::TimedOut => "timed_out",
            FailureKind::LimitReached => "limit_reached",
            FailureKind::StoreFailed => "store_failed",
            FailureKind::Unsupported => "unsupported",
            FailureKind::ShuttingDown => "shutting_down",
            FailureKind::Internal => "internal",
        };
        Self { kind: kind.to_owned(), message: failure.message.clone(), code, retry_after_ms }
    }
}

impl RunResult {
    /// The end of a turn, without what only its course can tell.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let (subtype, stop_reason, error) = match outcome {
            Outcome::Finished(stop) => (Subtype::Success, Some(stop_reason(stop)), None),
            Outcome::Cancelled => (Subtype::Cancelled, Some("cancelled"), None),
            Outcome::Interrupted(failure) => (Subtype::Error, None, Some(failure.into())),
        };
        Self {
            subtype,
            is_error: error.is_some(),
            result: String::new(),
            stop_reason: stop_reason.map(str::to_owned),
            duration_ms: 0,
            usage: TurnUsage::default(),
            session_id: None,
            error,
        }
    }
}

impl From<&Failure> for RunResult {
    /// What to print when there was no turn at all.
    fn from(failure: &Failure) -> Self {
        Self::of(&Outcome::Interrupted(failure.clone()))
    }
}

fn stop_reason(stop: &Stop) -> &str {
    match stop {
        Stop::EndTurn => "end_turn",
        Stop::MaxTokens => "max_tokens",
        Stop::MaxTurnRequests => "max_turn_requests",
        Stop::Refusal => "refusal",
        Stop::Other(reason) => reason,
    }
}

/// The whole of `json`: the result of the last turn, and every message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "result")]
pub struct Report {
    #[serde(flatten)]
    pub result: RunResult,
    pub messages: Vec<UnifiedMessage>,
}

impl Report {
    /// Folds what is there; `None` when no turn ended in it.
    pub fn of<'a>(context: Context, entries: impl IntoIterator<Item = &'a LogEntry>) -> Option<Self> {
        let mut fold = Fold::new(context);
        Self::from_lines(entries.into_iter().flat_map(|entry| fold.push(entry)))
    }

    /// The same from the lines of a stream.
    pub fn from_lines(lines: impl IntoIterator<Item = Line>) -> Option<Self> {
        let (mut messages, mut last) = (Vec::new(), None);
        for line in lines {
            match line {
                Line::Assistant { message, .. } | Line::User { message, .. } => {
                    messages.push(message);
                }
                Line::Result(result) => last = Some(result),
                Line::System(_) | Line::Delta(_) => {}
            }
        }
        last.map(|result| Self { result, messages })
    }
}
