//! Several gateways as one: which of them has a session, and which has the session that holds a history.
//!
//! A gateway that stands alone has neither; nothing is asked then.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use uuid::Uuid;

use crate::BoxFuture;
use crate::exchange::{Mark, Owner};
use crate::model::SessionId;

/// One gateway of a cluster, the same for as long as its state folder exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(Uuid);

impl NodeId {
    pub fn fresh() -> Self {
        Self(Uuid::now_v7())
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

impl FromStr for NodeId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::try_parse(text).map(Self)
    }
}

/// The state that the gateways share cannot be reached, or is full.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state that the gateways of this cluster share cannot be had: {reason}; try again in {} s", retry_after.as_secs().max(1))]
pub struct DirectoryError {
    pub reason: String,
    pub retry_after: Duration,
}

/// Who has which session. Asked by [`crate::session::Sessions`] alone; every call ends within a deadline of its own.
pub trait Directory: Send + Sync {
    /// Makes this gateway the owner of a session that is about to be made.
    fn claim(&self, session: SessionId) -> BoxFuture<'_, Result<(), DirectoryError>>;

    /// The other gateway that has this session. `None`: no other has it.
    fn elsewhere(&self, session: SessionId) -> BoxFuture<'_, Result<Option<NodeId>, DirectoryError>>;

    /// The session is gone. What cannot be told expires by itself.
    fn release(&self, session: SessionId) -> BoxFuture<'_, ()>;
}

/// Which gateway has the session that holds a history. The model of the owner does not matter here: gateways learn one by one
/// that an agent does not have a model and answers with another, and the one that has the session knows. Asked by [`crate::exchange::Exchanges`] alone, after its own index.
pub trait HistoryIndex: Send + Sync {
    /// The other gateway that has it. `None`: no other that lives has it.
    fn find(&self, owner: &Owner, history: Mark) -> BoxFuture<'_, Result<Option<NodeId>, DirectoryError>>;

    /// This gateway has the session that holds this history now. Resolves when the others can know, or after a short
    /// deadline: a history that was not noted begins a new session elsewhere.
    fn remember(&self, owner: &Owner, history: Mark) -> BoxFuture<'static, ()>;
}
