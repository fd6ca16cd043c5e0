//! A store on disk: a journal for what is new, `SQLite` for the rest, one process at a time.
//!
//! ```text
//! lock                     held while the store is open
//! journal/<n>.journal      what is not in the database yet; allocated ahead, used again
//! gembridge.db             session records, their logs in stretches, where turns begin
//! ```
//!
//! Nothing between a prompt and its agent waits for the disk: a record and the entries of a log are copied into the
//! journal, which survives the end of the process. A thread syncs it for those who wait for that, all together; another
//! moves each segment that is full into the database, with one commit.

mod archive;
mod database;
#[cfg(test)]
mod fault_tests;
mod files;
mod folder;
mod frame;
#[cfg(test)]
mod fuzz;
mod import;
mod journal;
mod reader;
mod record;
mod records;
mod retention;
mod segment;
mod sessions;
mod syncer;
mod sys;
mod tail;
mod writer;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use gembridge_core::BoxFuture;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{Principal, Seq, SessionId};
use gembridge_core::store::{LogWriter, Logs, Records, Reopened, SessionRecord, StoreError, TurnStart};

use self::archive::{Archive, Archiver};
use self::database::Database;
use self::files::{Files, RealFiles, failure};
use self::folder::{Folder, FolderLock};
use self::import::Import;
use self::journal::{Journal, Room};
use self::records::{Change, PendingRecords};
use self::sessions::{Claim, Sessions};
use self::syncer::Syncer;
use self::tail::{End, Tail};
use self::writer::DiskWriter;

pub use self::reader::DiskReader;
pub use self::retention::Retention;

/// Sizes that a test makes small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// A segment of the journal that has grown to this is moved into the database.
    pub segment_bytes: u64,
    /// How much of a log is read at once at most, but for a larger entry.
    pub chunk_bytes: u64,
    /// Write by memory where the file system allows it, instead of by system calls.
    pub may_map: bool,
}

impl Default for DiskOptions {
    fn default() -> Self {
        Self { segment_bytes: 2 << 20, chunk_bytes: 64 << 10, may_map: true }
    }
}

/// Sessions in a folder. Open it once for each process; clones and writers keep it open.
#[derive(Clone)]
pub struct DiskStore {
    disk: Arc<Disk>,
}

struct Disk {
    /// The threads first: they finish their work while the rest is there.
    importer: Importer,
    _archiver: Archiver,
    syncer: Syncer,
    journal: Arc<Journal>,
    records: Arc<PendingRecords>,
    sessions: Arc<Sessions>,
    import: Arc<Import>,
    database: Arc<Database>,
    options: DiskOptions,
    /// The newest id that was given to a session. Ids sort by their time, so a newer one is new.
    newest: Mutex<SessionId>,
    /// Last, so that it is given back when the threads are done.
    _lock: FolderLock,
}

/// The thread that moves logs of an earlier version, if there are any.
struct Importer {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Importer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that moves sessions of an earlier version panicked");
        }
    }
}

impl DiskStore {
    /// Blocks on the disk.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_with(folder, DiskOptions::default())
    }

    pub fn open_with(folder: impl Into<PathBuf>, options: DiskOptions) -> Result<Self, StoreError> {
        Self::open_on(folder.into(), options, Arc::new(RealFiles))
    }

    fn open_on(folder: PathBuf, options: DiskOptions, files: Arc<dyn Files>) -> Result<Self, StoreError> {
        let failed = |error: std::io::Error| failure(&error);
        let folder = Folder::new(folder);
        let lock = folder.lock()?;
        let connection = Database::connect(&folder.database())?;
        folder.settle_deletions(&connection)?;
        let import = Arc::new(Import::find(folder.sessions())?);

        let (journal, left) = Journal::open(folder.journal(), options, files)?;
        journal.begin_after(archive::replay(&connection, &left, options.chunk_bytes)?);
        for segment in left {
            journal.reuse(segment);
        }

        let newest = Mutex::new(database::newest(&connection)?);
        let (journal, database) = (Arc::new(journal), Arc::new(Database::start(connection)?));
        let (records, sessions) = (Arc::<PendingRecords>::default(), Arc::<Sessions>::default());
        let archive = Archive {
            journal: Arc::clone(&journal),
            database: Arc::clone(&database),
            sessions: Arc::clone(&sessions),
            records: Arc::clone(&records),
            chunk_bytes: options.chunk_bytes,
        };
        let disk = Disk {
            importer: Importer { is_over: Arc::default(), thread: None },
            _archiver: Archiver::start(archive).map_err(failed)?,
            syncer: Syncer::start(Arc::clone(&journal)).map_err(failed)?,
            journal,
            records,
            sessions,
            import,
            database,
            options,
            newest,
            _lock: lock,
        };
        Ok(Self { disk: Arc::new(disk.with_importer()?) })
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Disk) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let disk = Arc::clone(&self.disk);
        tokio::task::spawn_blocking(move || work(&disk))
            .await
            .unwrap_or_else(|error| Err(StoreError::Io(error.to_string())))
    }

    /// Brings the rows of the database up to date.
    async fn write_records(&self) -> Result<(), StoreError> {
        let records = Arc::clone(&self.disk.records);
        let write = move |connection: &_| database::atomically(connection, || records.write(connection));
        let written = self.disk.database.run(write).await?;
        self.disk.records.written(&written);
        Ok(())
    }

    /// Makes sure that the log of `id` is where this version looks for it.
    async fn moved_in(&self, id: SessionId) -> Result<(), StoreError> {
        if self.disk.import.is_done() || !self.disk.import.is_left(id) {
            return Ok(());
        }
        self.blocking(move |disk| disk.import.take(id, &disk.database, disk.options.chunk_bytes)).await
    }

    /// Where the log of a session ends that has nothing in the journal.
    async fn end_in_database(&self, id: SessionId) -> Result<End, StoreError> {
        // One that is new and was never spoken in may have no row yet.
        let is_new = matches!(self.disk.records.get(id), Some(Change::Created(_)));
        match self.disk.database.run(move |connection| database::find_end(connection, id)).await? {
            Some(end) => Ok(end),
            None if is_new => Ok(End::default()),
            None => Err(StoreError::Unknown(id)),
        }
    }

    async fn read_entries(
        &self,
        id: SessionId,
        after: u64,
        until: u64,
        limit: usize,
    ) -> Result<Vec<LogEntry>, StoreError> {
        self.exists(id).await?;
        let view = if let Some(tail) = self.disk.sessions.tail(id) {
            tail.view(after, until)
        } else {
            let last = self.end_in_database(id).await?.last;
            tail::View { archived: last, last, pieces: Vec::new() }
        };
        let until = until.min(view.last);
        let mut entries = Vec::new();
        let mut read = after;
        while read < until.min(view.archived) && entries.len() < limit {
            let chunk = self.disk.database.run(move |connection| database::chunk(connection, id, read + 1)).await?;
            tail::decode(record::EntryBodies::in_bytes(chunk), read, until, limit, &mut entries)?;
            let reached = entries.last().map_or(read, |entry| entry.seq.0);
            if reached <= read {
                return Err(StoreError::Damaged(format!(
                    "entry {} of session `{id}` was stored and cannot be read any more; restore the state folder \
                     from a backup or delete the session",
                    read + 1
                )));
            }
            read = reached;
        }
        if entries.len() < limit && !view.pieces.is_empty() {
            entries = self
                .blocking(move |_| {
                    let read = |piece: &tail::Piece| piece.read(after, until, limit, &mut entries);
                    view.pieces.iter().try_for_each(read)?;
                    Ok(entries)
                })
                .await?;
        }
        Ok(entries)
    }

    /// Fails for a session that is deleted, or was never there, as far as that is known without the database.
    async fn exists(&self, id: SessionId) -> Result<(), StoreError> {
        if self.disk.sessions.tail(id).is_some_and(|tail| tail.is_deleted())
            || matches!(self.disk.records.get(id), Some(Change::Deleted))
        {
            return Err(StoreError::Unknown(id));
        }
        self.moved_in(id).await
    }

    /// Notes the deletion; it survives the end of the process.
    fn forget(&self, id: SessionId) -> Result<(), StoreError> {
        self.disk.change(id, Change::Deleted)?;
        if !self.disk.import.is_done() {
            self.disk.import.forget(id);
        }
        Ok(())
    }
}

impl Disk {
    /// Begins to move what an earlier version left.
    fn with_importer(mut self) -> Result<Self, StoreError> {
        if !self.import.is_done() {
            let is_over = Arc::clone(&self.importer.is_over);
            let thread = import::in_background(
                Arc::clone(&self.import),
                Arc::clone(&self.database),
                self.options.chunk_bytes,
                move || is_over.load(Ordering::Relaxed),
            );
            self.importer.thread = Some(thread.map_err(|error| failure(&error))?);
        }
        Ok(self)
    }

    /// Appends the change to the journal. Gives the number of the frame.
    fn change(&self, id: SessionId, change: Change) -> Result<u64, StoreError> {
        let mut buffer = Vec::with_capacity(1 << 10);
        change.encode(id, &mut buffer)?;
        let room = if change == Change::Deleted { Room::Reserved } else { Room::Usual };
        // In the order of the journal, since an older one must not overtake a newer one.
        self.journal.append(&mut buffer, room, |_, _| {
            match (&change, self.sessions.tail(id)) {
                (Change::Deleted, Some(tail)) => tail.delete(),
                // It was deleted while this was on its way.
                (Change::Updated(_), Some(tail)) if tail.is_deleted() => return,
                _ => {}
            }
            self.records.change(id, change);
        })
    }

    /// Whether the id was never given to a session, as far as that is known without the database.
    fn is_new(&self, id: SessionId) -> bool {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = id > *newest;
        *newest = id.max(*newest);
        is_new
    }
}

impl Records for DiskStore {
    fn list(
        &self,
        principal: Option<Principal>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>> {
        Box::pin(async move {
            self.write_records().await?;
            self.disk.database.run(move |connection| database::list(connection, principal.as_ref(), limit)).await
        })
    }

    fn record(&self, id: SessionId) -> BoxFuture<'_, Result<SessionRecord, StoreError>> {
        Box::pin(async move {
            match self.disk.records.get(id) {
                Some(change) => change.into_record().ok_or(StoreError::Unknown(id)),
                None => self.disk.database.run(move |connection| database::record(connection, id)).await,
            }
        })
    }

    fn update(&self, record: SessionRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let is_open = self.disk.sessions.tail(record.id).is_some_and(|tail| !tail.is_deleted());
            if !is_open {
                self.record(record.id).await?;
            }
            self.disk.change(record.id, Change::Updated(record)).map(drop)
        })
    }
}

impl Logs for DiskStore {
    fn create(&self, record: SessionRecord) -> BoxFuture<'_, Result<Box<dyn LogWriter>, StoreError>> {
        Box::pin(async move {
            let id = record.id;
            let (claim, _) = Claim::take(&self.disk.sessions, id)?;
            if !self.disk.is_new(id) {
                // One that was deleted under this name must be gone.
                self.write_records().await?;
                if self.record(id).await.is_ok() {
                    return Err(StoreError::Refused(format!("session `{id}` is in the store already")));
                }
            }
            let newest_frame = self.disk.change(id, Change::Created(record))?;
            let tail = Arc::new(Tail::new(id, End::default()));
            claim.publish(&tail);
            let writer = DiskWriter::new(Arc::clone(&self.disk), claim, tail, newest_frame);
            Ok(Box::new(writer) as Box<dyn LogWriter>)
        })
    }

    fn reopen(&self, id: SessionId, tail: usize) -> BoxFuture<'_, Result<Reopened, StoreError>> {
        let entries = tail;
        Box::pin(async move {
            let record = self.record(id).await?;
            self.moved_in(id).await?;
            let (claim, tail) = Claim::take(&self.disk.sessions, id)?;
            let tail = match tail {
                Some(tail) => tail,
                None => Arc::new(Tail::new(id, self.end_in_database(id).await?)),
            };
            claim.publish(&tail);
            let end = tail.end();
            let after = end.last.saturating_sub(entries as u64);
            let writer = DiskWriter::new(Arc::clone(&self.disk), claim, tail, self.disk.journal.appended());
            let tail = self.read_entries(id, after, end.last, entries).await?;
            let (last, last_turn) = (Seq(end.last), end.last_turn);
            Ok(Reopened { record, writer: Box::new(writer), tail, last, last_turn })
        })
    }

    fn read(
        &self,
        id: SessionId,
        after: Seq,
        until: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<LogEntry>, StoreError>> {
        Box::pin(self.read_entries(id, after.0, until.0, limit))
    }

    fn turn_starts(&self, id: SessionId, turns: usize) -> BoxFuture<'_, Result<Vec<TurnStart>, StoreError>> {
        Box::pin(async move {
            self.exists(id).await?;
            let newest = if let Some(tail) = self.disk.sessions.tail(id) {
                tail.turn_starts(turns)
            } else {
                self.end_in_database(id).await?;
                Vec::new()
            };
            if newest.len() == turns {
                return Ok(newest);
            }
            let first = newest.first().map_or(u64::MAX, |start| start.after.0);
            let rest = turns;
            let mut starts =
                self.disk.database.run(move |connection| database::turn_starts(connection, id, rest)).await?;
            // Some of them may have got there meanwhile.
            starts.retain(|start| start.after.0 < first);
            starts.extend(newest);
            starts.drain(..starts.len().saturating_sub(turns));
            Ok(starts)
        })
    }

    fn delete(&self, id: SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.record(id).await?;
            self.forget(id)?;
            // Nothing that was deleted comes back after a power cut.
            self.disk.syncer.request().await.unwrap_or_else(|_| Err(StoreError::Io("the store was closed".to_owned())))
        })
    }
}
