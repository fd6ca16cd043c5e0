//! Logs of earlier versions, which had a folder for each session: moved into the database, the ones that somebody asks
//! for first, the rest in the background.

mod scan;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use gembridge_core::model::SessionId;
use gembridge_core::store::StoreError;

use self::scan::{LogPosition, Scan};
use super::database::{self, Database, atomically};
use super::files::{failure, read_up_to};
use super::record::{self, InBatch, u32_at, u64_at};

#[cfg(test)]
pub(super) use self::scan::{LogPosition as FuzzedPosition, Scan as FuzzedScan, path as fuzzed_path};

/// How much of a log is moved at once, but for a larger batch.
const PORTION: usize = 4 << 20;

/// The folders that are still to be moved.
pub(super) struct Import {
    folder: PathBuf,
    left: Mutex<HashSet<SessionId>>,
    /// All were tried: those that are left cannot be moved.
    was_tried: AtomicBool,
    /// One at a time: whoever wants a session that is just being moved waits for it.
    moving: Mutex<()>,
}

impl Import {
    pub fn find(folder: PathBuf) -> Result<Self, StoreError> {
        let mut left = HashSet::new();
        match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failure(&error)),
            Ok(entries) => {
                for entry in entries {
                    let name = entry.map_err(|error| failure(&error))?.file_name();
                    left.extend(name.to_str().and_then(|name| name.parse::<SessionId>().ok()));
                }
            }
        }
        Ok(Self { folder, left: Mutex::new(left), was_tried: AtomicBool::new(false), moving: Mutex::new(()) })
    }

    pub fn is_left(&self, id: SessionId) -> bool {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).contains(&id)
    }

    pub fn is_done(&self) -> bool {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Whether the database knows how large the sessions are.
    pub fn is_counted(&self) -> bool {
        self.is_done() || self.was_tried.load(Ordering::Relaxed)
    }

    fn next(&self, given_up: &HashSet<SessionId>) -> Option<SessionId> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.iter().find(|id| !given_up.contains(id)).copied()
    }

    /// Moves one log, if it is still to be moved. One that is damaged stays where it is, and says so each time.
    pub fn take(&self, id: SessionId, database: &Database, chunk_bytes: u64) -> Result<(), StoreError> {
        let _one = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_left(id) {
            return Ok(());
        }
        let folder = self.folder.join(id.to_string());
        // What an earlier attempt got into the database is skipped there.
        read(&folder, &mut |records| {
            database.run_blocking(move |connection| {
                atomically(connection, || {
                    let added = database::append(connection, id, &[records], chunk_bytes)?;
                    database::count_bytes(connection, i64::try_from(added).unwrap_or(i64::MAX))
                })
            })
        })?;
        self.forget(id);
        Ok(())
    }

    /// Clears away the folder of a session that is in the database, or deleted.
    pub fn forget(&self, id: SessionId) {
        let folder = self.folder.join(id.to_string());
        if let Err(error) = fs::remove_dir_all(&folder)
            && error.kind() != ErrorKind::NotFound
        {
            tracing::warn!(folder = %folder.display(), %error, "the folder of a session that was moved could not be removed");
        }
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.remove(&id);
        if left.is_empty() {
            // Empty by now, unless somebody else put something there.
            drop(fs::remove_dir(&self.folder));
        }
    }

    /// Moves everything, until `is_over` says to stop.
    pub fn take_all(&self, database: &Database, chunk_bytes: u64, is_over: impl Fn() -> bool) {
        let mut given_up = HashSet::new();
        while let Some(id) = self.next(&given_up).filter(|_| !is_over()) {
            if let Err(error) = self.take(id, database, chunk_bytes) {
                tracing::warn!(session = %id, %error, "a session of an earlier version could not be moved");
                given_up.insert(id);
            }
        }
        self.was_tried.store(true, Ordering::Relaxed);
    }
}

/// Hands on all records of a log up to the last whole batch, some megabytes at a time.
pub(super) fn read(folder: &Path, on: &mut dyn FnMut(Bytes) -> Result<(), StoreError>) -> Result<(), StoreError> {
    let mut scan = Scan::new(folder, LogPosition::START);
    let (mut records, mut whole) = (Vec::new(), 0);
    let mut end = LogPosition::START;
    while let Some(body) = scan.next()? {
        record::put(&body, &mut records);
        if record::in_batch(&body) == InBatch::Last {
            (whole, end) = (records.len(), scan.place());
            if whole >= PORTION {
                on(std::mem::take(&mut records).into())?;
                whole = 0;
            }
        }
    }
    records.truncate(whole);
    on(records.into())?;
    if end.seq < synced_before(folder)? {
        return Err(StoreError::Damaged(format!(
            "entry {} in `{}` was stored and cannot be read any more; restore the folder from a backup or delete the session",
            end.seq,
            folder.display()
        )));
    }
    Ok(())
}

/// The number after the last entry that is known to have been synced, by the index that stood beside a log.
fn synced_before(folder: &Path) -> Result<u64, StoreError> {
    /// Checksum, flags, the number of an entry, and what does not matter here.
    const ENTRY: usize = 56;
    let file = match File::open(folder.join("index")) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(failure(&error)),
    };
    let len = file.metadata().map_err(|error| failure(&error))?.len();
    let bytes = read_up_to(&file, 0, usize::try_from(len).unwrap_or(usize::MAX)).map_err(|error| failure(&error))?;
    let whole = bytes.chunks_exact(ENTRY).filter(|entry| u32_at(entry, 0) == Some(crc32fast::hash(&entry[4..])));
    Ok(whole.filter_map(|entry| u64_at(entry, 8)).max().unwrap_or(0))
}

/// Moves the rest in a thread of its own.
pub(super) fn in_background(
    import: Arc<Import>,
    database: Arc<Database>,
    chunk_bytes: u64,
    is_over: impl Fn() -> bool + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new()
        .name("store-import".to_owned())
        .spawn(move || import.take_all(&database, chunk_bytes, is_over))
}
