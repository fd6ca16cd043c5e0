//! A store on disk: logs as append-only segment files, records in `SQLite`, one process at a time.
//!
//! ```text
//! lock                      held while the store is open
//! gembridge.db              session records
//! sessions/<id>/<seq>.log   the log, one file for each stretch of it, named by its first entry
//! sessions/<id>/index       signposts into the log; can be made again from it
//! deleted/<id>/             a session on its way out
//! ```

mod claims;
mod database;
#[cfg(test)]
mod fault_tests;
mod files;
mod folder;
#[cfg(test)]
mod fuzz;
mod index;
mod live;
mod reader;
mod record;
mod recover;
mod retention;
mod segment;
mod syncer;
mod writer;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use gembridge_core::BoxFuture;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{Principal, Seq, SessionId};
use gembridge_core::store::{LogWriter, Reopened, SessionRecord, Store, StoreError, TurnStart};

use self::claims::{Claim, Claims};
use self::database::Database;
use self::files::{Files, RealFiles, failure};
use self::folder::{Folder, FolderLock, rename_if_there};
use self::index::View;
use self::live::{Access, Live};
use self::recover::{Found, Wanted};
use self::segment::LogPosition;
use self::syncer::Syncer;
use self::writer::DiskWriter;

pub use self::reader::DiskReader;
pub use self::retention::{Retention, Retired};

/// Sizes that a test makes small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// A segment of a log that has grown to this is followed by the next.
    pub segment_bytes: u64,
    /// How much of a log lies between two entries of its index at most, but for a larger entry.
    pub signpost_bytes: u64,
}

impl Default for DiskOptions {
    fn default() -> Self {
        Self { segment_bytes: 8 << 20, signpost_bytes: 64 << 10 }
    }
}

/// Sessions in a folder. Open it once for each process; clones and writers keep it open.
#[derive(Clone)]
pub struct DiskStore {
    disk: Arc<Disk>,
}

struct Disk {
    database: Database,
    syncer: Syncer,
    claims: Claims,
    files: Arc<dyn Files>,
    options: DiskOptions,
    folder: Folder,
    /// Last, so that it is given back when the threads are done.
    _lock: FolderLock,
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
        let folder = Folder::new(folder);
        let lock = folder.lock()?;
        let connection = Database::connect(&folder.database())?;
        folder.settle_deletions(&connection)?;
        let disk = Disk {
            database: Database::start(connection)?,
            syncer: Syncer::start(Arc::clone(&files)).map_err(|error| failure(&error))?,
            claims: Claims::default(),
            files,
            options,
            folder,
            _lock: lock,
        };
        Ok(Self { disk: Arc::new(disk) })
    }

    async fn known(&self, id: SessionId) -> Result<(), StoreError> {
        self.disk.database.run(move |connection| database::record(connection, id)).await.map(drop)
    }

    /// Runs `look` on the log of `id`, wherever its end is known.
    async fn look<T: Send + 'static>(
        &self,
        id: SessionId,
        look: impl Fn(&Disk, &View, u64) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        if let Some(live) = self.disk.claims.live(id).filter(|live| live.access() == Access::Open) {
            return self
                .blocking(move |disk| {
                    let (view, last) = live.view();
                    look(disk, &view, last)
                })
                .await;
        }
        self.known(id).await?;
        self.blocking(move |disk| {
            let (dir, spacing) = (disk.folder.session(id), disk.options.signpost_bytes);
            let look_at = |found: &Found| look(disk, &found.view, found.end.seq - 1);
            match look_at(&recover::look(&dir, spacing)?) {
                // The index may be what is damaged, and the log can be read without.
                Err(StoreError::Damaged(_)) => look_at(&recover::look_at_everything(&dir, spacing)?),
                looked => looked,
            }
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Disk>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let disk = Arc::clone(&self.disk);
        tokio::task::spawn_blocking(move || work(&disk))
            .await
            .unwrap_or_else(|error| Err(StoreError::Io(error.to_string())))
    }
}

impl Disk {
    /// Opens the log for more, cut after its last whole record.
    fn resume(&self, claim: Claim) -> Result<DiskWriter, StoreError> {
        let id = claim.id();
        let dir = self.folder.session(id);
        let found = recover::repair(&dir, self.options.signpost_bytes, &*self.files)?;
        let (end, newest_turn) = (found.end, found.newest_turn);
        let durable = found.durable.unwrap_or(LogPosition::START);

        let segments = recover::open_segments(&dir, durable, end, &*self.files)?;
        let current = segments.last().filter(|segment| segment.first == end.segment).cloned();
        let live = Arc::new(Live::new(id, dir, found, segments)?);
        claim.publish(&live);
        if durable < end {
            // What an ended process left in the page cache, so that nobody has to search it twice.
            self.syncer.request_in_background(&live);
        }
        Ok(DiskWriter::new(claim, live, current, newest_turn))
    }

    fn discard(&self, id: SessionId) -> Result<(), StoreError> {
        let moved = rename_if_there(&self.folder.session(id), &self.folder.deleted(id))
            .and_then(|()| self.files.sync_dir(&self.folder.sessions()));
        moved.map_err(|error| failure(&error))
    }

    fn take_back(&self, id: SessionId) {
        if let Err(error) = rename_if_there(&self.folder.deleted(id), &self.folder.session(id)) {
            tracing::error!(session = %id, %error, "a session that could not be deleted is restored at the next start");
        }
    }
}

impl Store for DiskStore {
    fn create(&self, record: SessionRecord) -> BoxFuture<'_, Result<Box<dyn LogWriter>, StoreError>> {
        Box::pin(async move {
            let claim = Claim::take(&self.disk, record.id)?;
            let writer = self.blocking(move |disk| disk.resume(claim)).await?;
            let insert = move |connection: &_| database::insert(connection, &record);
            self.disk.database.run(insert).await?;
            Ok(Box::new(writer) as Box<dyn LogWriter>)
        })
    }

    fn reopen(&self, id: SessionId, tail: usize) -> BoxFuture<'_, Result<Reopened, StoreError>> {
        Box::pin(async move {
            let get = move |connection: &_| database::record(connection, id);
            let record = self.disk.database.run(get).await?;
            let claim = Claim::take(&self.disk, id)?;
            self.blocking(move |disk| {
                let writer = disk.resume(claim)?;
                let (view, last) = writer.view();
                let after = last.saturating_sub(tail as u64);
                let wanted = Wanted { after, until: last, limit: tail };
                let tail = recover::read(&disk.folder.session(id), &view, last, wanted)?;
                let last_turn = view.turn_starts(1)?.last().map(|start| start.turn);
                Ok(Reopened { record, writer: Box::new(writer), tail, last: Seq(last), last_turn })
            })
            .await
        })
    }

    fn read(
        &self,
        id: SessionId,
        after: Seq,
        until: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<LogEntry>, StoreError>> {
        let wanted = Wanted { after: after.0, until: until.0, limit };
        Box::pin(self.look(id, move |disk, view, last| recover::read(&disk.folder.session(id), view, last, wanted)))
    }

    fn turn_starts(&self, id: SessionId, turns: usize) -> BoxFuture<'_, Result<Vec<TurnStart>, StoreError>> {
        Box::pin(self.look(id, move |_, view, _| Ok(view.turn_starts(turns)?)))
    }

    fn list(
        &self,
        principal: Option<Principal>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>> {
        Box::pin(self.disk.database.run(move |connection| database::list(connection, principal.as_ref(), limit)))
    }

    fn record(&self, id: SessionId) -> BoxFuture<'_, Result<SessionRecord, StoreError>> {
        Box::pin(self.disk.database.run(move |connection| database::record(connection, id)))
    }

    fn update(&self, record: SessionRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.disk.database.run(move |connection| database::update(connection, &record)))
    }

    fn delete(&self, id: SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.known(id).await?;
            let live = self.disk.claims.live(id);
            if let Some(live) = &live {
                live.set_access(Access::Deleted);
            }
            let forgotten = match self.blocking(move |disk| disk.discard(id)).await {
                Ok(()) => {
                    let forget = move |connection: &_| database::delete(connection, id);
                    self.disk.database.run(forget).await
                }
                Err(error) => Err(error),
            };
            if let Err(error) = forgotten {
                if let Some(live) = &live {
                    live.set_access(Access::Open);
                }
                self.disk.take_back(id);
                return Err(error);
            }
            self.blocking(move |disk| {
                match fs::remove_dir_all(disk.folder.deleted(id)) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        tracing::warn!(session = %id, %error, "a deleted session is cleared away at the next start");
                    }
                    _ => {}
                }
                Ok(())
            })
            .await
        })
    }
}
