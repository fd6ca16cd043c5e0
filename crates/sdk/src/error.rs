//! Why there is no adapter, and why there is no answer, each with what to do about it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use gembridge_core::error::Error as CoreError;
use gembridge_core::exchange::ExchangeError;
use gembridge_core::model::{Failure, FailureKind};

/// Why an adapter cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    #[error("the workspace `{}` is not an absolute path; give one", .0.display())]
    RelativeWorkspace(PathBuf),
    #[error("the workspace `{}` is not a folder; make it first", .0.display())]
    NoWorkspace(PathBuf),
    /// The agent's program is not there; the message says how to get it.
    #[error("{0}")]
    NotInstalled(String),
    /// What was said about the agent does not fit.
    #[error("{0}")]
    Agent(String),
    #[error(
        "no program to watch over agents: call `gembridge_sdk::run_helper()` first thing in `main`, install `gembridge`, or \
         name one with `helper_program`"
    )]
    NoHelper,
    #[error("two tools are called `{0}`; give each a name of its own")]
    SameName(String),
    #[error("cannot make a private folder: {0}; check `TMPDIR`")]
    Folder(#[from] std::io::Error),
}

/// Where on the way from a prompt to its answer something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Before or while the agent worked: it could not be started, refused, failed, or took too long.
    Request,
    /// The agent answered, and the answer is not what was asked for.
    Response,
    /// A function of this program ended the evaluation.
    Tool,
    /// The budget is used up.
    Budget,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "request",
            Self::Response => "response",
            Self::Tool => "tool",
            Self::Budget => "budget",
        })
    }
}

/// What went wrong, by what the caller can do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The prompt, a tool or the schema cannot be used as it is.
    Invalid,
    /// The agent does not have the model; the message lists those it has.
    UnknownModel,
    /// The agent could not be started, or did not finish its handshake in time.
    Start,
    /// The agent wants a login that it does not have.
    NeedsLogin,
    /// The deadline of the prompt, or the time that a turn may take, has passed.
    Deadline,
    /// The agent answered with an error of its own.
    Refused,
    /// The agent's provider asks to slow down.
    RateLimited,
    /// The agent's process ended, or broke its protocol.
    Crashed,
    /// There is no room for one more turn now.
    Busy { retry_after: Duration },
    /// The turn was cancelled.
    Cancelled,
    /// The agent ended its turn and said nothing.
    EmptyResponse,
    /// The answer does not have the form that was asked for; `said` is what the agent said, cut to 2000 characters.
    Output { said: String },
    /// A function of this program ended the evaluation.
    Aborted,
    /// The budget has no tokens or no time left.
    BudgetExhausted,
    /// The adapter was closed.
    Closed,
    /// Our own fault.
    Internal,
}

/// Why a prompt has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{phase}: {message}")]
#[non_exhaustive]
pub struct EvaluateError {
    pub phase: Phase,
    pub kind: ErrorKind,
    /// What happened and the way out, in one sentence.
    pub message: String,
    /// The end of what the agent wrote to its standard error. Agents dump prompts there: not for every log.
    pub stderr: Option<String>,
}

impl EvaluateError {
    pub(crate) fn new(phase: Phase, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { phase, kind, message: message.into(), stderr: None }
    }

    pub(crate) fn request(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::new(Phase::Request, kind, message)
    }

    pub(crate) fn closed() -> Self {
        Self::request(ErrorKind::Closed, "the adapter was closed; build another one")
    }
}

impl From<Failure> for EvaluateError {
    fn from(failure: Failure) -> Self {
        let kind = match failure.kind {
            FailureKind::Refused { .. } | FailureKind::ContextFull { .. } | FailureKind::Unsupported => {
                ErrorKind::Refused
            }
            FailureKind::UnknownModel { .. } => ErrorKind::UnknownModel,
            FailureKind::RateLimited => ErrorKind::RateLimited,
            FailureKind::Crashed | FailureKind::Protocol | FailureKind::LimitReached => ErrorKind::Crashed,
            FailureKind::NeedsLogin => ErrorKind::NeedsLogin,
            FailureKind::TimedOut => ErrorKind::Deadline,
            FailureKind::Unavailable { retry_after } | FailureKind::QuotaReached { retry_after } => {
                ErrorKind::Busy { retry_after }
            }
            FailureKind::ShuttingDown => ErrorKind::Closed,
            FailureKind::Forbidden | FailureKind::StoreFailed | FailureKind::Internal => ErrorKind::Internal,
        };
        Self { phase: Phase::Request, kind, message: failure.message, stderr: failure.stderr_tail }
    }
}

impl From<CoreError> for EvaluateError {
    fn from(error: CoreError) -> Self {
        match error {
            CoreError::Agent(failure) => failure.into(),
            CoreError::Closed => Self::closed(),
            CoreError::Invalid(message) => Self::request(ErrorKind::Invalid, message),
            other => other.into_failure().into(),
        }
    }
}

impl From<ExchangeError> for EvaluateError {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::Core(error) => error.into(),
            ExchangeError::Invalid { message, .. } => Self::request(ErrorKind::Invalid, message),
            ExchangeError::UnknownModel(message) => Self::request(ErrorKind::UnknownModel, message),
            ExchangeError::NoToolCall(message) => Self::new(Phase::Response, ErrorKind::EmptyResponse, message),
            ExchangeError::NoOutput(message) => {
                let said = message.rsplit_once("the agent said: ").map(|(_, said)| said.to_owned()).unwrap_or_default();
                let message = format!("structured output is required, but {message}");
                Self::new(Phase::Response, ErrorKind::Output { said }, message)
            }
            ExchangeError::Cancelled => {
                Self::request(ErrorKind::Cancelled, "the turn was cancelled before the agent finished")
            }
        }
    }
}
