//! The newest part of one session's log: what is in the journal only, and whether anybody may add to it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{SessionId, TurnId};
use gembridge_core::store::{StoreError, TurnStart};

use super::files::failure;
use super::record::{self, EntryBodies};
use super::segment::Segment;

/// Where a log ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    /// The number of the last entry; zero when there is none.
    pub last: u64,
    pub last_turn: Option<TurnId>,
}

pub(super) struct Tail {
    pub id: SessionId,
    state: Mutex<State>,
}

struct State {
    is_deleted: bool,
    /// The last entry that is in the database.
    archived: u64,
    end: End,
    /// Oldest first, without gaps.
    pieces: VecDeque<Piece>,
    /// Of the turns that began after `archived`, oldest first.
    turns: Vec<TurnStart>,
}

/// Frames of the session that follow each other in a segment.
#[derive(Clone)]
pub(super) struct Piece {
    pub segment: Arc<Segment>,
    pub offset: u64,
    pub len: u64,
    pub first: u64,
    pub last: u64,
}

/// A log at one moment.
pub(super) struct View {
    pub archived: u64,
    pub last: u64,
    /// Those with entries of what was asked for.
    pub pieces: Vec<Piece>,
}

impl Tail {
    pub fn new(id: SessionId, end: End) -> Self {
        let state = State { is_deleted: false, archived: end.last, end, pieces: VecDeque::new(), turns: Vec::new() };
        Self { id, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No step between lock and unlock can panic half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_deleted(&self) -> bool {
        self.lock().is_deleted
    }

    pub fn delete(&self) {
        let mut state = self.lock();
        state.is_deleted = true;
        state.pieces.clear();
        state.turns.clear();
    }

    pub fn end(&self) -> End {
        self.lock().end
    }

    pub fn is_archived(&self) -> bool {
        self.lock().pieces.is_empty()
    }

    /// Adds what was just written; joins it to the last piece where it follows it and that stays below `most` bytes.
    pub fn push(&self, piece: Piece, end: End, turns: &mut Vec<TurnStart>, most: u64) {
        let mut state = self.lock();
        state.end = end;
        state.turns.append(turns);
        match state.pieces.back_mut() {
            Some(last)
                if Arc::ptr_eq(&last.segment, &piece.segment)
                    && last.offset + last.len == piece.offset
                    && last.len + piece.len <= most =>
            {
                last.len += piece.len;
                last.last = piece.last;
            }
            _ => state.pieces.push_back(piece),
        }
    }

    /// The database has everything up to segment `number`.
    pub fn archived(&self, number: u64) {
        let mut state = self.lock();
        while state.pieces.front().is_some_and(|piece| piece.segment.number <= number) {
            if let Some(piece) = state.pieces.pop_front() {
                state.archived = piece.last;
            }
        }
        let archived = state.archived;
        state.turns.retain(|start| start.after.0 >= archived);
        if state.pieces.is_empty() {
            // Many sessions are silent for long.
            state.pieces.shrink_to_fit();
            state.turns.shrink_to_fit();
        }
    }

    /// What is known of the entries in `(after, until]`.
    pub fn view(&self, after: u64, until: u64) -> View {
        let state = self.lock();
        let begin = state.pieces.partition_point(|piece| piece.last <= after);
        let pieces = state.pieces.range(begin..).take_while(|piece| piece.first <= until).cloned().collect();
        View { archived: state.archived, last: state.end.last, pieces }
    }

    /// The newest starts of turns that are not in the database, newest last.
    pub fn turn_starts(&self, limit: usize) -> Vec<TurnStart> {
        let state = self.lock();
        state.turns[state.turns.len().saturating_sub(limit)..].to_vec()
    }
}

impl Piece {
    /// Adds its entries in `(after, until]` to `entries`, as far as these are fewer than `limit`.
    pub fn read(&self, after: u64, until: u64, limit: usize, entries: &mut Vec<LogEntry>) -> Result<(), StoreError> {
        let (frames, end) = self.segment.frames(self.offset, self.len).map_err(|error| failure(&error))?;
        if end < self.offset + self.len {
            return Err(StoreError::Damaged(format!("`{}` cannot be read any more", self.segment.path.display())));
        }
        let bodies = frames.iter().flat_map(|frame| EntryBodies::in_bytes(frame.payload.clone()));
        decode(bodies, after, until, limit, entries)
    }
}

/// Adds the entries in `(after, until]` to `entries`, as far as these are fewer than `limit`.
pub(super) fn decode(
    bodies: impl Iterator<Item = Bytes>,
    after: u64,
    until: u64,
    limit: usize,
    entries: &mut Vec<LogEntry>,
) -> Result<(), StoreError> {
    for body in bodies {
        let seq = record::head(&body).map_or(0, |head| head.seq);
        if seq > until || entries.len() >= limit {
            break;
        }
        if seq > after {
            entries.push(record::decode(&body)?);
        }
    }
    Ok(())
}
