//! The session's ordered log: what every reader sees, in one order, from one owner.
//!
//! The actor appends batches; the newest stay in memory; followers get each batch as it was appended. Taking a
//! snapshot and beginning to follow is one step of the owner, so nothing falls between and nothing comes twice.

mod followers;
mod pending;
mod weight;

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use self::followers::Followers;
use self::pending::Pending;
pub(crate) use self::weight::{of_event as weight_of, of_message as weight_of_message, of_prompt as weight_of_prompt};
use crate::limit::Limits;
use crate::model::{Event, Frame, Prompt, Seq, Timestamp, TurnId};
use crate::store::{LogWriter, SessionRecord, StoreError};

/// One step of a session with its place in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    pub seq: Seq,
    pub at: Timestamp,
    pub turn: Option<TurnId>,
    pub event: Event,
    /// What the agent sent, where the entry stands for something it sent.
    pub frame: Option<Frame>,
}

impl LogEntry {
    /// What it weighs in memory, near enough to bound a ring by.
    pub fn weight(&self) -> usize {
        // An event that came in a frame shares the frame's bytes.
        let body = self.frame.as_ref().map_or_else(|| weight::of_event(&self.event), |frame| frame.bytes.len());
        std::mem::size_of::<Self>() + body
    }
}

/// Entries that were appended together, shared by everyone who reads them.
pub type Batch = Arc<[LogEntry]>;

/// Sees what happens in every session: for an audit, for metrics. It changes nothing and stops nothing.
pub trait LogObserver: Send + Sync {
    /// Called for each session that comes into memory.
    fn observe(&self, session: &SessionRecord) -> Box<dyn SessionObserver>;
}

/// Belongs to the owner of one session's log.
pub trait SessionObserver: Send {
    /// Called with what was stored, before readers have it. A session waits for it, so it must be quick.
    fn appended(&mut self, entries: &[LogEntry]);
}

/// Where a reader wants to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum From {
    /// Only what comes from now on.
    Now,
    /// Everything after this entry.
    After(Seq),
}

/// What a follower wants when it does not keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backpressure {
    /// It is dropped, and comes back with the number it saw last. Nobody waits for it.
    Own,
    /// The agent waits for it, for a bounded time. For the only reader of a session.
    HoldAgent,
}

/// A reader's view of a log: what is there, and what comes.
pub struct Attachment {
    /// Entries that are in the store only: read them there before the snapshot.
    pub older: Option<Older>,
    pub snapshot: Vec<Batch>,
    /// The number of the last entry of the snapshot.
    pub last: Seq,
    /// The questions up to there that nobody has answered, whether they are in the snapshot or before it.
    pub open: Vec<LogEntry>,
    /// Closes when the session does, or when this follower fell too far behind.
    pub follow: mpsc::Receiver<Batch>,
}

/// Entries that have left the memory: those in `(after, until]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Older {
    pub after: Seq,
    pub until: Seq,
}

/// The log of one session. Owned by its actor.
pub struct SessionLog {
    writer: Box<dyn LogWriter>,
    observer: Option<Box<dyn SessionObserver>>,
    ring: VecDeque<Batch>,
    ring_entries: usize,
    ring_bytes: usize,
    last: Seq,
    last_at: Timestamp,
    followers: Followers,
    pending: Pending,
    limits: Limits,
}

/// An event on its way into the log.
#[derive(Clone, Debug)]
pub struct Draft {
    pub turn: Option<TurnId>,
    pub event: Event,
    pub frame: Option<Frame>,
}

impl SessionLog {
    /// Goes on after `last` with the entries that were read back in `tail`.
    pub fn new(writer: Box<dyn LogWriter>, last: Seq, tail: Vec<LogEntry>, limits: Limits) -> Self {
        let mut log = Self {
            writer,
            observer: None,
            ring: VecDeque::new(),
            ring_entries: 0,
            ring_bytes: 0,
            last,
            last_at: tail.last().map_or(Timestamp::default(), |entry| entry.at),
            followers: Followers::new(limits.follower_batches, limits.follower_bytes, limits.follower_stall),
            pending: Pending::default(),
            limits,
        };
        if !tail.is_empty() {
            let weight = tail.iter().map(LogEntry::weight).sum();
            log.keep(tail.into(), weight);
        }
        log
    }

    #[must_use]
    pub(crate) fn observed_by(mut self, observer: Option<Box<dyn SessionObserver>>) -> Self {
        self.observer = observer;
        self
    }

    pub fn last(&self) -> Seq {
        self.last
    }

    /// How many follow it now.
    pub fn followers(&mut self) -> usize {
        self.followers.count()
    }

    /// The prompt of a turn, if it is still in memory.
    pub(crate) fn prompt_of(&self, turn: TurnId) -> Option<&Prompt> {
        self.ring.iter().rev().flat_map(|batch| batch.iter()).find_map(|entry| match &entry.event {
            Event::Prompted { prompt, .. } if entry.turn == Some(turn) => Some(prompt),
            _ => None,
        })
    }

    /// Numbers, stores and hands out the drafts as one batch. Nothing is handed out that was not stored.
    pub fn append(&mut self, drafts: Vec<Draft>) -> Result<Batch, StoreError> {
        let entries = self.number(drafts);
        self.add(&entries)?;
        Ok(entries)
    }

    /// The drafts as the entries that come next.
    pub(crate) fn number(&self, drafts: Vec<Draft>) -> Batch {
        // A clock that was set back must not reorder what is ordered already.
        let at = Timestamp::now().max(self.last_at);
        let mut seq = self.last;
        let numbered = drafts.into_iter().map(|draft| {
            seq = seq.next();
            LogEntry { seq, at, turn: draft.turn, event: draft.event, frame: draft.frame }
        });
        numbered.collect()
    }

    /// Stores and hands out the entries that come next.
    pub(crate) fn add(&mut self, entries: &Batch) -> Result<(), StoreError> {
        let Some(last) = entries.last() else { return Ok(()) };
        self.writer.append(entries)?;
        if let Some(observer) = &mut self.observer {
            observer.appended(entries);
        }
        (self.last, self.last_at) = (last.seq, last.at);
        self.pending.note(entries);
        let weight = entries.iter().map(LogEntry::weight).sum();
        self.keep(Arc::clone(entries), weight);
        self.followers.hand_out(entries, weight);
        Ok(())
    }

    /// Resolves when everything appended so far survives a power cut.
    pub fn sync(&mut self) -> crate::BoxFuture<'static, Result<(), StoreError>> {
        self.writer.sync()
    }

    /// Snapshot and follow in one step.
    pub fn attach(&mut self, from: From, backpressure: Backpressure) -> Attachment {
        let after = match from {
            From::Now => self.last,
            From::After(seq) => seq.min(self.last),
        };
        let oldest = self.ring.front().and_then(|batch| batch.first()).map_or(self.last.next(), |entry| entry.seq);
        let older = (after.next() < oldest).then(|| Older { after, until: Seq(oldest.0 - 1) });
        let first = self.ring.partition_point(|batch| batch.last().is_none_or(|entry| entry.seq <= after));
        let snapshot = self.ring.range(first..).filter_map(|batch| after_entry(batch, after)).collect();
        let open = self.pending.open();
        Attachment { older, snapshot, last: self.last, open, follow: self.followers.add(backpressure) }
    }

    /// Lets every follower go.
    pub fn dismiss_followers(&mut self) {
        self.followers.dismiss();
    }

    /// Whether a follower that may hold the agent has not taken what is there.
    pub fn is_held(&self) -> bool {
        self.followers.is_held()
    }

    /// Resolves when nobody holds the agent any more: they caught up, or lost their place after a bounded time.
    pub async fn release(&mut self) {
        self.followers.release().await;
    }

    fn keep(&mut self, batch: Batch, weight: usize) {
        self.ring_entries += batch.len();
        self.ring_bytes += weight;
        self.ring.push_back(batch);
        while self.ring.len() > 1
            && (self.ring_entries > self.limits.ring_entries || self.ring_bytes > self.limits.ring_bytes)
        {
            let Some(oldest) = self.ring.pop_front() else { break };
            self.ring_entries -= oldest.len();
            self.ring_bytes -= oldest.iter().map(LogEntry::weight).sum::<usize>();
        }
    }
}

/// The part of `batch` that lies after `seq`.
fn after_entry(batch: &Batch, seq: Seq) -> Option<Batch> {
    let start = batch.partition_point(|entry| entry.seq <= seq);
    match start {
        0 => Some(Arc::clone(batch)),
        _ if start == batch.len() => None,
        _ => Some(batch[start..].into()),
    }
}
