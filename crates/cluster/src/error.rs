//! What cannot be had of the shared state, by what the caller can do about it.

use std::time::Duration;

use gembridge_core::directory::DirectoryError;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// The address cannot be used as it is written.
    #[error("`cluster.redis` is not an address of Redis: {0}; write `redis://host:6379` or `rediss://host:6379`")]
    Address(String),
    /// Nobody answers, or not in time.
    #[error("Redis does not answer: {0}")]
    Unreachable(String),
    /// It answers, and refuses: it is full, read-only, or wants other credentials.
    #[error("Redis refuses: {0}")]
    Refused(String),
    #[error("Redis is of version {0}; 7.0 or newer is needed, or Valkey")]
    TooOld(String),
    /// Another process has taken the name of this gateway.
    #[error(
        "another gateway runs with the id of this one; a state folder was copied, remove the file `node` of the copy"
    )]
    Replaced,
}

/// Redis is asked again once a second.
const RETRY: Duration = Duration::from_secs(1);

impl From<ClusterError> for DirectoryError {
    fn from(error: ClusterError) -> Self {
        Self { reason: error.to_string(), retry_after: RETRY }
    }
}
