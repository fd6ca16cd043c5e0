//! Moves what is in the journal into the database, a segment at a time.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use gembridge_core::model::SessionId;
use gembridge_core::store::StoreError;
use rusqlite::Connection;

use super::database::{self, Database, atomically};
use super::files::failure;
use super::frame::{Frame, Kind};
use super::journal::Journal;
use super::records::{Change, PendingRecords};
use super::segment::{HEADER, Segment};
use super::sessions::Sessions;

/// How long to wait after the database refused a segment.
const PAUSE: Duration = Duration::from_secs(1);

/// The thread that does it.
pub(super) struct Archiver {
    journal: Arc<Journal>,
    thread: Option<JoinHandle<()>>,
}

/// What it works on.
pub(super) struct Archive {
    pub journal: Arc<Journal>,
    pub database: Arc<Database>,
    pub sessions: Arc<Sessions>,
    pub records: Arc<PendingRecords>,
    pub chunk_bytes: u64,
}

impl Archiver {
    pub fn start(archive: Archive) -> io::Result<Self> {
        let journal = Arc::clone(&archive.journal);
        let thread = thread::Builder::new().name("store-archive".to_owned()).spawn(move || archive.run())?;
        Ok(Self { journal, thread: Some(thread) })
    }
}

impl Drop for Archiver {
    fn drop(&mut self) {
        self.journal.close();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that moves the journal into the database panicked");
        }
    }
}

impl Archive {
    fn run(&self) {
        while let Some(segment) = self.journal.next_sealed() {
            match self.take(&segment) {
                Ok(sessions) => {
                    self.sessions.archived(sessions.into_iter(), segment.number);
                    self.journal.leave(segment);
                }
                Err(error) => {
                    tracing::warn!(%error, "the journal could not be moved into the database; it is tried again");
                    drop(segment);
                    if !self.journal.stuck(error, PAUSE) {
                        return;
                    }
                }
            }
        }
    }

    /// Gives the sessions that the segment had entries of.
    fn take(&self, segment: &Segment) -> Result<Vec<SessionId>, StoreError> {
        let end = segment.end.load(Ordering::Acquire);
        let (frames, readable) = segment.frames(HEADER, end - HEADER).map_err(|error| failure(&error))?;
        if readable < end {
            // What the disk gave back is not what was written. The sessions whose entries are missing say so when read.
            let (file, bytes) = (segment.path.display(), end - readable);
            tracing::error!(%file, bytes, "a part of the journal was lost before it got into the database");
        }
        let logs = Logs::of(frames);
        let sessions: Vec<_> = logs.order.clone();
        let (records, number, chunk_bytes) = (Arc::clone(&self.records), segment.number, self.chunk_bytes);
        let written = self.database.run_blocking(move |connection| {
            atomically(connection, || {
                let written = records.write(connection)?;
                logs.write(connection, chunk_bytes)?;
                database::set_archived(connection, number)?;
                Ok(written)
            })
        })?;
        self.records.written(&written);
        Ok(sessions)
    }
}

/// The entries of many sessions, gathered from frames.
#[derive(Default)]
struct Logs {
    /// As they came up.
    order: Vec<SessionId>,
    batches: HashMap<SessionId, Vec<Bytes>>,
}

impl Logs {
    fn of(frames: Vec<Frame>) -> Self {
        let mut logs = Self::default();
        for frame in frames {
            if frame.kind == Kind::Entries {
                logs.add(frame.session, frame.payload);
            }
        }
        logs
    }

    fn add(&mut self, session: SessionId, batch: Bytes) {
        let order = &mut self.order;
        self.batches
            .entry(session)
            .or_insert_with(|| {
                order.push(session);
                Vec::new()
            })
            .push(batch);
    }

    fn write(&self, connection: &Connection, chunk_bytes: u64) -> Result<(), StoreError> {
        let mut added = 0;
        for (session, batches) in self.order.iter().filter_map(|id| self.batches.get_key_value(id)) {
            added += database::append(connection, *session, batches, chunk_bytes)?;
        }
        database::count_bytes(connection, i64::try_from(added).unwrap_or(i64::MAX))
    }
}

/// Takes over what an ended process left in its journal; gives the number of the last segment.
pub(super) fn replay(connection: &Connection, left: &[Segment], chunk_bytes: u64) -> Result<u64, StoreError> {
    let archived = database::archived(connection)?;
    let mut last = archived;
    let mut newer: Vec<_> = left.iter().filter(|segment| segment.number > archived).collect();
    newer.sort_by_key(|segment| segment.number);
    if newer.is_empty() {
        return Ok(last);
    }
    database::in_transaction(connection, || {
        for segment in newer {
            let mut logs = Logs::default();
            let mut changes: HashMap<SessionId, Change> = HashMap::new();
            for frame in segment.all_frames().map_err(|error| failure(&error))? {
                if frame.kind == Kind::Entries {
                    logs.add(frame.session, frame.payload);
                } else if let Some(change) = Change::of(&frame) {
                    let change = match changes.remove(&frame.session) {
                        Some(earlier) => earlier.then(change),
                        None => change,
                    };
                    changes.insert(frame.session, change);
                } else {
                    tracing::warn!(session = %frame.session, "a record in the journal cannot be read");
                }
            }
            for (id, change) in changes {
                change.write(id, connection)?;
            }
            logs.write(connection, chunk_bytes)?;
            last = segment.number;
        }
        database::set_archived(connection, last)
    })?;
    Ok(last)
}
