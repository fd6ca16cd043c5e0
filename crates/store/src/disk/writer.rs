//! The end of one log: each batch becomes one frame of the journal.

use std::sync::Arc;

use gembridge_core::BoxFuture;
use gembridge_core::log::LogEntry;
use gembridge_core::store::{LogWriter, StoreError, TurnStart, check_continuity};

use super::Disk;
use super::frame::{self, Kind};
use super::journal::Room;
use super::record;
use super::sessions::Claim;
use super::tail::{End, Piece, Tail};

/// A buffer that a large batch has grown beyond this is given back: the writers of silent sessions are many. Pieces of a
/// stream fit into it.
const KEPT_BUFFER: usize = 4 << 10;

/// The database could not take more in one row.
const LARGEST_BATCH: usize = 512 << 20;

pub(super) struct DiskWriter {
    disk: Arc<Disk>,
    tail: Arc<Tail>,
    end: End,
    /// The number in the journal of the newest frame of this log.
    newest_frame: u64,
    buffer: Vec<u8>,
    turns: Vec<TurnStart>,
    /// After `disk` no more than before it: the right to write ends with the writer.
    _claim: Claim,
}

impl DiskWriter {
    pub fn new(disk: Arc<Disk>, claim: Claim, tail: Arc<Tail>, newest_frame: u64) -> Self {
        let end = tail.end();
        Self { disk, tail, end, newest_frame, buffer: Vec::new(), turns: Vec::new(), _claim: claim }
    }

    /// Encodes the batch as a frame, and gives the log's end as it will be once that is written.
    fn encode(&mut self, entries: &[LogEntry]) -> Result<End, StoreError> {
        frame::begin(&mut self.buffer);
        self.turns.clear();
        let mut end = self.end;
        for entry in entries {
            record::encode(entry, &mut self.buffer)?;
            self.turns.extend(turn_start(&mut end, entry));
        }
        let refused = || StoreError::Refused("a batch is too large to be stored: over 512 MiB".to_owned());
        if self.buffer.len() > LARGEST_BATCH {
            return Err(refused());
        }
        frame::finish(&mut self.buffer, Kind::Entries, self.tail.id).ok_or_else(refused)?;
        Ok(end)
    }
}

/// Counts `entry` in; gives the start of its turn if it is the first of it.
fn turn_start(end: &mut End, entry: &LogEntry) -> Option<TurnStart> {
    let begins = entry.turn.filter(|turn| end.last_turn.is_none_or(|newest| *turn > newest));
    let after = gembridge_core::model::Seq(end.last);
    *end = End { last: entry.seq.0, last_turn: begins.or(end.last_turn) };
    begins.map(|turn| TurnStart { turn, after, at: entry.at })
}

impl LogWriter for DiskWriter {
    fn append(&mut self, entries: &[LogEntry]) -> Result<(), StoreError> {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(()) };
        if self.tail.is_deleted() {
            return Err(StoreError::Unknown(self.tail.id));
        }
        check_continuity(entries, self.end.last + 1)?;
        let end = self.encode(entries)?;
        let Self { disk, tail, buffer, turns, .. } = self;
        let len = (buffer.len() - frame::TERMINATOR.len()) as u64;
        let appended = disk.journal.append(buffer, Room::Usual, |segment, offset| {
            let piece = Piece { segment: Arc::clone(segment), offset, len, first: first.seq.0, last: last.seq.0 };
            tail.push(piece, end, turns, disk.options.chunk_bytes);
        });
        if self.buffer.capacity() > KEPT_BUFFER {
            self.buffer = Vec::new();
        }
        self.newest_frame = appended?;
        self.end = end;
        Ok(())
    }

    fn sync(&mut self) -> BoxFuture<'static, Result<(), StoreError>> {
        let (disk, newest_frame) = (Arc::clone(&self.disk), self.newest_frame);
        Box::pin(async move {
            if disk.journal.is_synced(newest_frame) {
                return Ok(());
            }
            let answer = disk.syncer.request();
            // Whoever waits does not keep the store open.
            drop(disk);
            answer.await.unwrap_or_else(|_| Err(StoreError::Io("the store was closed".to_owned())))
        })
    }
}
