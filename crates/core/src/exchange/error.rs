//! Why a request gets no answer. Each frontend renders it in its own envelope.

use crate::admission::QueueFull;
use crate::error::Error;
use crate::model::Failure;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    #[error(transparent)]
    Core(#[from] Error),
    /// The request cannot be honoured as it is.
    #[error("{message}")]
    Invalid { field: Field, message: String },
    #[error("{0}")]
    UnknownModel(String),
    /// The agent answered in prose where a call of a tool was required.
    #[error("{0}")]
    NoToolCall(String),
    /// The agent's answer does not have the form that was asked for.
    #[error("{0}")]
    NoOutput(String),
    /// The turn was cancelled by another client before the agent finished.
    #[error(
        "the turn was cancelled by somebody else who follows its session; what came of the answer is not all of it"
    )]
    Cancelled,
}

/// What of a request an error is about. A dialect has its own names for these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Model,
    Tools,
    Output,
    /// The schema of the output.
    OutputSchema,
    /// How many answers.
    Answers,
}

impl ExchangeError {
    pub fn invalid(field: Field, message: impl Into<String>) -> Self {
        Self::Invalid { field, message: message.into() }
    }
}

impl From<Failure> for ExchangeError {
    fn from(failure: Failure) -> Self {
        Self::Core(Error::Agent(failure))
    }
}

impl From<QueueFull> for ExchangeError {
    fn from(full: QueueFull) -> Self {
        Self::Core(Error::QueueFull(full))
    }
}
