//! What outlives the process: the records of sessions, and their logs.

mod continuity;
mod memory;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::continuity::check as check_continuity;
pub use self::memory::MemoryStore;
use crate::BoxFuture;
use crate::log::LogEntry;
use crate::model::{AgentName, Principal, Seq, SessionId, Timestamp, TurnId};

/// Keeps sessions. One implementation per medium; one test suite runs on each.
pub trait Store: Records + Logs {}

impl<S: Records + Logs> Store for S {}

/// What is known of each session without reading it. May be far away: nothing waits for it while a turn runs.
pub trait Records: Send + Sync {
    /// The records that `principal` owns, or all for `None`; newest change first, at most `limit`.
    fn list(&self, principal: Option<Principal>, limit: usize)
    -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>>;

    fn record(&self, id: SessionId) -> BoxFuture<'_, Result<SessionRecord, StoreError>>;

    /// Replaces the record. Resolves when it is safe.
    fn update(&self, record: SessionRecord) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// What was said in each session. Near to whoever runs the session: a [`LogWriter`] appends without waiting.
pub trait Logs: Send + Sync {
    /// Begins a session: its record, and its log. Resolves when the record is safe.
    fn create(&self, record: SessionRecord) -> BoxFuture<'_, Result<Box<dyn LogWriter>, StoreError>>;

    /// Opens the log of an earlier session for more. A torn tail is cut off first. `tail` bounds how many of the
    /// newest entries come back with it.
    fn reopen(&self, id: SessionId, tail: usize) -> BoxFuture<'_, Result<Reopened, StoreError>>;

    /// The entries with numbers in `(after, until]`, oldest first, at most `limit`.
    fn read(
        &self,
        id: SessionId,
        after: Seq,
        until: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<LogEntry>, StoreError>>;

    /// The sequence number just before the first entry of each of the newest turns: what "the last N turns" means
    /// to [`Logs::read`], without reading the turns. At most `turns`, newest last; times are those of the prompts.
    fn turn_starts(&self, id: SessionId, turns: usize) -> BoxFuture<'_, Result<Vec<TurnStart>, StoreError>>;

    /// Forgets the session, its record and its log.
    fn delete(&self, id: SessionId) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// The end of one session's log. Owned by the session's actor; there is one per session.
pub trait LogWriter: Send {
    /// Appends the batch with one write, in order. When it returns, the entries survive the end of this process.
    /// On an error nothing of the batch counts as written, and the next append starts at the same place.
    fn append(&mut self, entries: &[LogEntry]) -> Result<(), StoreError>;

    /// Resolves when everything appended so far survives a power cut. Nothing is done for a future that is not polled.
    fn sync(&mut self) -> BoxFuture<'static, Result<(), StoreError>>;
}

pub struct Reopened {
    pub record: SessionRecord,
    pub writer: Box<dyn LogWriter>,
    /// The newest entries, oldest first.
    pub tail: Vec<LogEntry>,
    /// The number of the last entry; [`Seq::START`] when there is none.
    pub last: Seq,
    pub last_turn: Option<TurnId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnStart {
    pub turn: TurnId,
    /// Entries of the turn are those after this one.
    pub after: Seq,
    pub at: Timestamp,
}

/// What is known of a session without reading its log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    pub id: SessionId,
    pub principal: Principal,
    pub agent: AgentName,
    /// The agent's own name of the session it last had for us.
    pub agent_session: Option<Arc<str>>,
    pub workspace: Option<PathBuf>,
    pub model: Option<Arc<str>>,
    pub mode: Option<Arc<str>>,
    pub title: Option<Arc<str>>,
    pub created: Timestamp,
    pub updated: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("session `{0}` is not in the store")]
    Unknown(SessionId),
    #[error("the disk that holds the sessions is full; free some space, nothing that was acknowledged is lost")]
    Full,
    /// Passes by itself, as others let go of theirs.
    #[error("the gateway has no file descriptor left for the sessions on disk; try again in a second")]
    NoDescriptor,
    #[error("the sessions on disk cannot be written: {0}; check the state folder's disk and permissions")]
    Io(String),
    #[error("the sessions on disk are damaged: {0}")]
    Damaged(String),
    /// Another process has it now.
    #[error("{0}")]
    InUse(String),
    #[error("{0}")]
    Refused(String),
}
