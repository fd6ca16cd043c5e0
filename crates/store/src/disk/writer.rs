//! The end of one log on disk: one write for each batch, and nothing left behind by one that failed.

use std::io;
use std::sync::Arc;

use gembridge_core::BoxFuture;
use gembridge_core::log::LogEntry;
use gembridge_core::model::TurnId;
use gembridge_core::store::{LogWriter, StoreError, check_continuity};

use super::claims::Claim;
use super::files::{failure, write_all_at};
use super::index::{Signpost, Surveyor, View};
use super::live::{Access, Live};
use super::record::{self, Head, InBatch};
use super::segment::{self, LogPosition, Segment};

/// A buffer that a large batch has grown beyond this is given back: the writers of silent sessions are many. Pieces of a
/// stream fit into it.
const KEPT_BUFFER: usize = 4 << 10;

pub(super) struct DiskWriter {
    claim: Claim,
    live: Arc<Live>,
    /// `None` until the first entry, and right after a segment was full.
    segment: Option<Arc<Segment>>,
    end: LogPosition,
    /// There may be bytes after `end`, of a batch that failed. They must go before anything else is written.
    stained: bool,
    surveyor: Surveyor,
    buffer: Vec<u8>,
    signposts: Vec<Signpost>,
}

impl DiskWriter {
    pub fn new(claim: Claim, live: Arc<Live>, segment: Option<Arc<Segment>>, newest_turn: Option<TurnId>) -> Self {
        let end = live.end();
        let spacing = claim.disk().options.signpost_bytes;
        Self {
            claim,
            live,
            segment,
            end,
            stained: false,
            surveyor: Surveyor { newest_turn, last: end, spacing },
            buffer: Vec::new(),
            signposts: Vec::new(),
        }
    }

    /// How to find what was written, and the number of the last entry.
    pub fn view(&self) -> (View, u64) {
        self.live.view()
    }

    /// Encodes the batch, and gives the state as it will be once it is written.
    fn encode(&mut self, entries: &[LogEntry]) -> Result<(LogPosition, Surveyor), StoreError> {
        self.buffer.clear();
        self.signposts.clear();
        let (mut end, mut surveyor) = (self.end, self.surveyor);
        if end.offset == 0 {
            segment::write_header(&mut self.buffer);
            end.offset = self.buffer.len() as u64;
        }
        for (number, entry) in entries.iter().enumerate() {
            let before = self.buffer.len();
            let in_batch = if number + 1 == entries.len() { InBatch::Last } else { InBatch::MoreFollow };
            record::encode(entry, in_batch, &mut self.buffer)?;
            let head = Head { seq: entry.seq.0, at: entry.at, turn: entry.turn };
            self.signposts.extend(surveyor.survey(end, head));
            end.offset += (self.buffer.len() - before) as u64;
            end.seq += 1;
        }
        Ok((end, surveyor))
    }

    fn clean(&mut self) -> io::Result<()> {
        if let Some(segment) = self.segment.as_ref().filter(|_| self.stained) {
            self.claim.disk().files.truncate(&segment.file, self.end.offset)?;
        }
        self.stained = false;
        Ok(())
    }

    fn leave_full_segment(&mut self) {
        if self.end.offset >= self.claim.disk().options.segment_bytes {
            self.segment = None;
            self.end = LogPosition { segment: self.end.seq, offset: 0, seq: self.end.seq };
            // So that what waits for a sync stays small in a turn that never asks for one.
            self.claim.disk().syncer.request_in_background(&self.live);
        }
    }

    fn segment(&mut self) -> io::Result<Arc<Segment>> {
        if let Some(segment) = &self.segment {
            return Ok(Arc::clone(segment));
        }
        let files = &self.claim.disk().files;
        if self.end == LogPosition::START {
            files.create_dir(&self.live.dir)?;
        }
        let file = files.create(&segment::path(&self.live.dir, self.end.segment))?;
        let segment = Arc::new(Segment::new(self.end.segment, file));
        self.live.began(Arc::clone(&segment));
        self.segment = Some(Arc::clone(&segment));
        Ok(segment)
    }

    fn write(&mut self) -> io::Result<()> {
        let segment = self.segment()?;
        let files = &self.claim.disk().files;
        let written = write_all_at(&**files, &segment.file, &self.buffer, self.end.offset);
        if written.is_err() {
            self.stained = true;
            if let Err(error) = self.clean() {
                tracing::warn!(session = %self.live.id, %error, "a failed write is cleaned up later");
            }
        }
        written
    }
}

impl LogWriter for DiskWriter {
    fn append(&mut self, entries: &[LogEntry]) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        if self.live.access() == Access::Deleted {
            return Err(StoreError::Unknown(self.live.id));
        }
        check_continuity(entries, self.end.seq)?;
        self.clean().map_err(|error| failure(&error))?;
        self.leave_full_segment();
        let (end, surveyor) = self.encode(entries)?;
        let written = self.write();
        if self.buffer.capacity() > KEPT_BUFFER {
            self.buffer = Vec::new();
        }
        written.map_err(|error| failure(&error))?;
        self.end = end;
        self.surveyor = surveyor;
        self.live.advanced(end, &mut self.signposts);
        Ok(())
    }

    fn sync(&mut self) -> BoxFuture<'static, Result<(), StoreError>> {
        let (disk, live) = (Arc::clone(self.claim.disk()), Arc::clone(&self.live));
        Box::pin(async move {
            let answer = disk.syncer.request(&live);
            // Whoever waits does not keep the store open.
            drop((disk, live));
            answer.await.unwrap_or_else(|_| Err(StoreError::Io("the store was closed".to_owned())))
        })
    }
}

impl Drop for DiskWriter {
    fn drop(&mut self) {
        if self.live.access() == Access::Open {
            self.live.set_access(Access::Closed);
        }
    }
}
