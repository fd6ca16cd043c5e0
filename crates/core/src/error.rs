//! What a caller of the core can get instead of an answer, by what the caller can do about it.

use std::time::Duration;

use crate::admission::QueueFull;
use crate::directory::{DirectoryError, NodeId};
use crate::model::{CallId, Failure, FailureKind};
use crate::store::StoreError;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request itself is wrong; sending it again will not help.
    #[error("{0}")]
    Invalid(String),
    /// No such session, or none that this principal may see.
    #[error("session `{0}` was not found; it may have been closed, or belong to another key")]
    UnknownSession(String),
    /// Another gateway of the cluster has the session.
    #[error("the session is at another gateway of this cluster, and the request cannot be passed on; try again")]
    Elsewhere(NodeId),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The question was answered already, or never asked.
    #[error("this question is not open any more; somebody answered it first, or its turn ended")]
    NotAsked,
    /// No call with this id waits for a result.
    #[error("the call `{0}` does not wait for a result any more")]
    NotParked(CallId),
    /// A queue is full.
    #[error("{what} is full; try again in {} s", retry_after.as_secs().max(1))]
    Busy { what: &'static str, retry_after: Duration },
    /// The agent has no room for one more turn to wait.
    #[error("the queue of the agent is full: {0}")]
    QueueFull(#[from] QueueFull),
    /// The session is not where the caller believed it to be.
    #[error("the conversation went on without this request; send its whole history again")]
    MovedOn,
    /// The session was closed, or the gateway is going down.
    #[error("the session is closed")]
    Closed,
    #[error(transparent)]
    Agent(#[from] Failure),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// The same as the end of a turn that had begun.
    pub fn into_failure(self) -> Failure {
        match self {
            Self::Agent(failure) => failure,
            Self::Store(error @ StoreError::NoDescriptor) => {
                Failure::new(FailureKind::Unavailable { retry_after: Duration::from_secs(1) }, error.to_string())
            }
            Self::Store(error) => Failure::new(FailureKind::StoreFailed, error.to_string()),
            Self::Closed => Failure::new(FailureKind::ShuttingDown, self.to_string()),
            Self::Busy { retry_after, .. }
            | Self::QueueFull(QueueFull { retry_after, .. })
            | Self::Directory(DirectoryError { retry_after, .. }) => {
                Failure::new(FailureKind::Unavailable { retry_after }, self.to_string())
            }
            Self::Invalid(_)
            | Self::UnknownSession(_)
            | Self::Elsewhere(_)
            | Self::NotAsked
            | Self::NotParked(_)
            | Self::MovedOn => Failure::new(FailureKind::Unsupported, self.to_string()),
        }
    }
}
