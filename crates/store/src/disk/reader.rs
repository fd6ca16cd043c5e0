//! Reads the sessions of a state folder without taking it: another process may have it open meanwhile.
//!
//! The journal is read before the database. What is moved from one to the other in between is then in both, and counts
//! once; the other way round it could be in neither.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use gembridge_core::log::LogEntry;
use gembridge_core::model::SessionId;
use gembridge_core::store::{SessionRecord, StoreError};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::database::{self, refusal};
use super::files::failure;
use super::folder::Folder;
use super::frame::{Frame, Kind};
use super::import;
use super::record::{self, Records};
use super::records;
use super::segment::{self, Left};

/// How often the database is read until nobody has written to it meanwhile.
const TRIES: usize = 20;

/// What is on disk at this moment. Changes nothing of it, and makes no folder that is missing.
pub struct DiskReader {
    folder: Folder,
    scratch: PathBuf,
}

/// What the database holds, seen from a folder of our own.
struct View {
    database: PathBuf,
    folder: PathBuf,
    connection: Connection,
    before: [Option<(u64, SystemTime)>; 2],
}

impl DiskReader {
    /// `scratch` is a private folder from which the database is read: whoever has the store open lets nobody else read it
    /// where it is.
    pub fn new(folder: impl Into<PathBuf>, scratch: impl Into<PathBuf>) -> Self {
        Self { folder: Folder::new(folder.into()), scratch: scratch.into() }
    }

    /// The records of all sessions, newest change first. None where nothing was ever kept.
    pub fn list(&self) -> Result<Vec<SessionRecord>, StoreError> {
        let frames = self.frames()?;
        let Some(mut view) = self.view()? else { return Ok(Vec::new()) };
        let rows = view.read(|connection| database::list(connection, None, usize::MAX))?;
        let mut found: HashMap<_, _> = rows.into_iter().map(|record| (record.id, record)).collect();
        for frame in frames {
            match frame.kind {
                Kind::Entries => {}
                Kind::Deleted => drop(found.remove(&frame.session)),
                Kind::Record => found.extend(records::decode(&frame.payload).map(|record| (record.id, record))),
            }
        }
        let mut found: Vec<_> = found.into_values().collect();
        found.sort_by_key(|record| std::cmp::Reverse((record.updated, record.id)));
        Ok(found)
    }

    /// Hands the entries of a session to `on`, oldest first, up to the last batch that was wholly written.
    pub fn entries(&self, id: SessionId, on: &mut dyn FnMut(LogEntry)) -> Result<(), StoreError> {
        let folder = self.folder.sessions().join(id.to_string());
        if folder.exists() {
            // Of an earlier version, and not moved yet.
            return hand_out(Records::in_bytes(import::read(&folder)?), &mut 0, on);
        }
        let frames = self.frames()?;
        let Some(mut view) = self.view()? else { return Ok(()) };
        let mut last = 0;
        loop {
            let before = last;
            let chunk = view.read(|connection| database::chunk(connection, id, before + 1))?;
            hand_out(Records::in_bytes(chunk), &mut last, on)?;
            if last == before {
                break;
            }
        }
        hand_out(bodies_of(id, frames), &mut last, on)
    }

    /// How long the log of a session is, in bytes, about: it changes with every entry.
    pub fn length(&self, id: SessionId) -> Result<u64, StoreError> {
        let frames = self.frames()?;
        let Some(mut view) = self.view()? else { return Ok(0) };
        let end = view.read(|connection| database::find_end(connection, id))?.unwrap_or_default();
        let bytes = view.read(|connection| database::bytes_of(connection, id))?;
        let newer = bodies_of(id, frames).filter(|body| record::head(body).is_some_and(|head| head.seq > end.last));
        Ok(bytes + newer.map(|body| (record::PREFIX + body.len()) as u64).sum::<u64>())
    }

    /// Everything in the journal, in order.
    fn frames(&self) -> Result<Vec<Frame>, StoreError> {
        let entries = match fs::read_dir(self.folder.journal()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| failure(&error))?,
        };
        let mut segments = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| failure(&error))?.path();
            if segment::slot_of(&path).is_none() {
                continue;
            }
            match Left::open(path.clone()) {
                Ok(Left::Segment(segment)) => segments.push(segment),
                Ok(Left::Spare(_)) => {}
                // Given back to the disk meanwhile.
                Err(_) if !path.exists() => {}
                Err(error) => return Err(error),
            }
        }
        segments.sort_by_key(|segment| segment.number);
        let mut frames = Vec::new();
        for segment in segments {
            // One that is used again meanwhile has another salt, and its old frames are in the database by now.
            frames.extend(segment.all_frames().map_err(|error| failure(&error))?);
        }
        Ok(frames)
    }

    /// `None` where there is no database.
    fn view(&self) -> Result<Option<View>, StoreError> {
        let database = self.folder.database();
        if !database.exists() {
            return Ok(None);
        }
        let folder = self.scratch.join(format!("records-{}-{}", std::process::id(), SessionId::new()));
        fs::DirBuilder::new().mode(0o700).create(&folder).map_err(|error| failure(&error))?;
        let opened = look_through(&database, &folder);
        if opened.is_err() {
            remove(&folder);
        }
        let (connection, before) = opened?;
        Ok(Some(View { database, folder, connection, before }))
    }
}

impl View {
    /// Reads until nobody has written to the database meanwhile.
    fn read<T>(&mut self, read: impl Fn(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        for _ in 0..TRIES {
            let result = read(&self.connection);
            if states(&self.database).map_err(|error| failure(&error))? == self.before {
                return result;
            }
            (self.connection, self.before) = look_through(&self.database, &self.folder)?;
        }
        Err(StoreError::InUse("the records of the sessions are being written all the time; try again".to_owned()))
    }
}

impl Drop for View {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

fn remove(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder) {
        tracing::debug!(%error, folder = %folder.display(), "a view of the records could not be removed");
    }
}

/// Opens the database for reading by another name in `folder`, with a copy of its log of changes: what `SQLite` does to a
/// log that it finds is done to the copy.
fn look_through(database: &Path, folder: &Path) -> Result<(Connection, [Option<(u64, SystemTime)>; 2]), StoreError> {
    let failed = |error: io::Error| failure(&error);
    let view = folder.join(format!("{}.db", SessionId::new()));
    let before = states(database).map_err(failed)?;
    if fs::hard_link(database, &view).is_err() {
        fs::copy(database, &view).map_err(failed)?;
    }
    match fs::copy(log_of(database), log_of(&view)) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        copied => drop(copied.map_err(failed)?),
    }
    // Whoever owns the database has it locked; it is read as a file that nobody writes to, and read again if somebody did.
    let address = format!("file:{}?mode=ro&nolock=1", view.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(address, flags).map_err(|error| refusal(&error))?;
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .and_then(|_| connection.pragma_update(None, "locking_mode", "EXCLUSIVE"))
        .map_err(|error| refusal(&error))?;
    Ok((connection, before))
}

fn bodies_of(id: SessionId, frames: Vec<Frame>) -> impl Iterator<Item = Bytes> {
    let of_session = frames.into_iter().filter(move |frame| frame.kind == Kind::Entries && frame.session == id);
    of_session.flat_map(|frame| Records::in_bytes(frame.payload))
}

/// Hands on what follows entry `last`.
fn hand_out(
    bodies: impl Iterator<Item = Bytes>,
    last: &mut u64,
    on: &mut dyn FnMut(LogEntry),
) -> Result<(), StoreError> {
    for body in bodies {
        if record::head(&body).is_some_and(|head| head.seq == *last + 1) {
            *last += 1;
            on(record::decode(&body)?);
        }
    }
    Ok(())
}

/// The log of changes beside a database.
fn log_of(database: &Path) -> PathBuf {
    let mut name = OsString::from(database);
    name.push("-wal");
    name.into()
}

fn states(database: &Path) -> io::Result<[Option<(u64, SystemTime)>; 2]> {
    Ok([state(database)?, state(&log_of(database))?])
}

fn state(path: &Path) -> io::Result<Option<(u64, SystemTime)>> {
    match fs::metadata(path) {
        Ok(found) => Ok(Some((found.len(), found.modified()?))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gembridge_core::model::{AgentName, Event, Principal, Seq, Text, Timestamp};
    use gembridge_core::store::Store as _;

    use super::*;
    use crate::DiskStore;

    fn entry(seq: u64) -> LogEntry {
        let event = Event::Text(Text::plain(format!("piece {seq}")));
        LogEntry { seq: Seq(seq), at: Timestamp(seq), turn: None, event, frame: None }
    }

    #[tokio::test]
    async fn sessions_are_read_while_their_owner_writes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("sessions");
        let reader = DiskReader::new(&root, folder.path());
        assert_eq!(reader.list().unwrap(), []);
        assert!(!root.exists(), "reading makes nothing");
        let store = DiskStore::open(&root).unwrap();
        let record = SessionRecord {
            id: SessionId::new(),
            principal: Principal::new("operator"),
            agent: AgentName::new("demo"),
            agent_session: Some(Arc::from("theirs")),
            workspace: None,
            model: None,
            mode: None,
            title: None,
            created: Timestamp(1),
            updated: Timestamp(2),
        };
        let mut writer = store.create(record.clone()).await.unwrap();
        assert_eq!(reader.list().unwrap(), std::slice::from_ref(&record));
        let read = || {
            let mut found = Vec::new();
            reader.entries(record.id, &mut |entry| found.push(entry)).unwrap();
            found
        };
        assert_eq!((read(), reader.length(record.id).unwrap()), (vec![], 0));
        writer.append(&[entry(1), entry(2)]).unwrap();
        let length = reader.length(record.id).unwrap();
        assert_eq!(read(), [entry(1), entry(2)]);
        writer.append(&[entry(3)]).unwrap();
        assert_eq!(read().len(), 3);
        assert!(reader.length(record.id).unwrap() > length);
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["sessions"], "no copy is left behind");
    }
}
