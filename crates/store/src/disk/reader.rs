//! Reads the sessions of a state folder without taking it: another process may have it open meanwhile.
//!
//! The journal is read before the database. What is moved from one to the other in between is then in both, and counts
//! once; the other way round it could be in neither.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use gembridge_core::log::LogEntry;
use gembridge_core::model::SessionId;
use gembridge_core::store::{SessionRecord, StoreError};
use rusqlite::{Connection, OpenFlags};

use super::database::{self, refusal};
use super::files::failure;
use super::folder::Folder;
use super::frame::{Frame, Kind};
use super::import;
use super::record::{self, EntryBodies};
use super::records::Change;
use super::segment::{self, Left};

/// How often the database is read until nobody has written to it meanwhile.
const TRIES: usize = 20;

/// What is on disk at this moment. Changes nothing of it, and makes no folder that is missing.
pub struct DiskReader {
    folder: Folder,
}

/// What the database holds.
struct View {
    database: PathBuf,
    connection: Connection,
    before: State,
}

impl DiskReader {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Folder::new(folder.into()) }
    }

    /// The records of all sessions, newest change first. None where nothing was ever kept.
    pub fn list(&self) -> Result<Vec<SessionRecord>, StoreError> {
        let frames = self.frames()?;
        let Some(mut view) = self.view()? else { return Ok(Vec::new()) };
        let rows = view.read(|connection| database::list(connection, None, usize::MAX))?;
        let mut found: HashMap<_, _> = rows.into_iter().map(|record| (record.id, record)).collect();
        for frame in frames {
            match Change::of(&frame) {
                None => {}
                Some(Change::Deleted) => drop(found.remove(&frame.session)),
                Some(Change::Created(record)) => drop(found.insert(frame.session, record)),
                Some(Change::Updated(record)) => {
                    found.entry(frame.session).and_modify(|known| *known = record);
                }
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
            let mut last = 0;
            return import::read(&folder, &mut |records| hand_out(EntryBodies::in_bytes(records), &mut last, on));
        }
        let frames = self.frames()?;
        let Some(mut view) = self.view()? else { return Ok(()) };
        let mut last = 0;
        loop {
            let before = last;
            let chunk = view.read(|connection| database::chunk(connection, id, before + 1))?;
            hand_out(EntryBodies::in_bytes(chunk), &mut last, on)?;
            if last == before {
                break;
            }
        }
        hand_out(bodies_of(id, frames), &mut last, on)
    }

    /// How long the log of each session is, in bytes, about: it changes with every entry.
    pub fn lengths(&self) -> Result<HashMap<SessionId, u64>, StoreError> {
        let frames = self.frames()?;
        let Some(mut view) = self.view()? else { return Ok(HashMap::new()) };
        let rows = view.read(database::lengths)?;
        let mut lengths: HashMap<_, _> = rows.iter().map(|row| (row.session, row.bytes)).collect();
        let ends: HashMap<_, _> = rows.iter().map(|row| (row.session, row.last)).collect();
        for frame in frames.into_iter().filter(|frame| frame.kind == Kind::Entries) {
            let archived = ends.get(&frame.session).copied().unwrap_or(0);
            let newer = EntryBodies::in_bytes(frame.payload)
                .filter(|body| record::head(body).is_some_and(|head| head.seq > archived));
            *lengths.entry(frame.session).or_default() +=
                newer.map(|body| (record::PREFIX + body.len()) as u64).sum::<u64>();
        }
        Ok(lengths)
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
        let (connection, before) = look_at(&database)?;
        Ok(Some(View { database, connection, before }))
    }
}

impl View {
    /// Reads until nobody has written to the database meanwhile.
    fn read<T>(&mut self, read: impl Fn(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        for _ in 0..TRIES {
            let result = read(&self.connection);
            if state(&self.database).map_err(|error| failure(&error))? == self.before {
                return result;
            }
            (self.connection, self.before) = look_at(&self.database)?;
        }
        Err(StoreError::InUse("the records of the sessions are being written all the time; try again".to_owned()))
    }
}

/// Opens the database as a file that nobody writes to: its owner has it locked. What its log of changes holds beyond the
/// file is in the journal too.
fn look_at(database: &Path) -> Result<(Connection, State), StoreError> {
    let before = state(database).map_err(|error| failure(&error))?;
    let mut address = OsString::from("file:");
    address.push(percent_encoded(database));
    address.push("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(PathBuf::from(address), flags).map_err(|error| refusal(&error))?;
    Ok((connection, before))
}

/// A path as part of a URI.
fn percent_encoded(path: &Path) -> OsString {
    let bytes = path.as_os_str().as_bytes().iter();
    let encoded = bytes.flat_map(|byte| match byte {
        b'%' | b'?' | b'#' => format!("%{byte:02x}").into_bytes(),
        _ => vec![*byte],
    });
    OsString::from_vec(encoded.collect())
}

fn bodies_of(id: SessionId, frames: Vec<Frame>) -> impl Iterator<Item = Bytes> {
    let of_session = frames.into_iter().filter(move |frame| frame.kind == Kind::Entries && frame.session == id);
    of_session.flat_map(|frame| EntryBodies::in_bytes(frame.payload))
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

type State = (u64, SystemTime);

fn state(path: &Path) -> io::Result<State> {
    let found = fs::metadata(path)?;
    Ok((found.len(), found.modified()?))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gembridge_core::model::{AgentName, Event, Principal, Seq, Text, Timestamp};
    use gembridge_core::store::{LogWriter, Logs as _};

    use super::*;
    use crate::DiskStore;

    fn entry(seq: u64) -> LogEntry {
        let event = Event::Text(Text::plain(format!("piece {seq}")));
        LogEntry { seq: Seq(seq), at: Timestamp(seq), turn: None, event, frame: None }
    }

    fn read_after_close(reader: &DiskReader, store: DiskStore, writer: Box<dyn LogWriter>, id: SessionId) -> bool {
        drop((store, writer));
        let mut found = Vec::new();
        reader.entries(id, &mut |entry| found.push(entry)).unwrap();
        found == [entry(1), entry(2), entry(3)]
    }

    #[tokio::test]
    async fn sessions_are_read_while_their_owner_writes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("sessions");
        let reader = DiskReader::new(&root);
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
        let length = || reader.lengths().unwrap().get(&record.id).copied().unwrap_or(0);
        assert_eq!((read(), length()), (vec![], 0));
        writer.append(&[entry(1), entry(2)]).unwrap();
        let before = length();
        assert_eq!(read(), [entry(1), entry(2)]);
        writer.append(&[entry(3)]).unwrap();
        assert_eq!(read().len(), 3);
        assert!(length() > before);
        assert!(read_after_close(&reader, store, writer, record.id), "and when its owner is gone");
    }
}
