//! Reads the sessions of a state folder without taking it: another process may have it open meanwhile.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gembridge_core::log::LogEntry;
use gembridge_core::model::SessionId;
use gembridge_core::store::{SessionRecord, StoreError};
use rusqlite::Connection;

use super::database::{self, refusal};
use super::files::failure;
use super::folder::Folder;
use super::record::{self, InBatch};
use super::segment::{LogPosition, Scan};

/// How often the records are copied until nobody has written to them meanwhile.
const TRIES: usize = 20;

/// What is on disk at this moment. Changes nothing of it, and makes no folder that is missing.
pub struct DiskReader {
    folder: Folder,
    scratch: PathBuf,
}

impl DiskReader {
    /// `scratch` is a private folder in which the records are copied for a moment: whoever has the store open lets nobody
    /// else read them where they are.
    pub fn new(folder: impl Into<PathBuf>, scratch: impl Into<PathBuf>) -> Self {
        Self { folder: Folder::new(folder.into()), scratch: scratch.into() }
    }

    /// The records of all sessions, newest change first. None where nothing was ever kept.
    pub fn list(&self) -> Result<Vec<SessionRecord>, StoreError> {
        if !self.folder.database().exists() {
            return Ok(Vec::new());
        }
        let copy = self.scratch.join(format!("records-{}-{}", std::process::id(), SessionId::new()));
        fs::DirBuilder::new().mode(0o700).create(&copy).map_err(|error| failure(&error))?;
        let records = self.list_in(&copy);
        if let Err(error) = fs::remove_dir_all(&copy) {
            tracing::debug!(%error, folder = %copy.display(), "a copy of the records could not be removed");
        }
        records
    }

    fn list_in(&self, folder: &Path) -> Result<Vec<SessionRecord>, StoreError> {
        let copy = folder.join("records.db");
        for _ in 0..TRIES {
            if copied(&self.folder.database(), &copy).map_err(|error| failure(&error))? == Copied::Steadily {
                let connection = Connection::open(&copy).map_err(|error| refusal(&error))?;
                return database::list(&connection, None, usize::MAX);
            }
        }
        Err(StoreError::InUse("the records of the sessions are being written all the time; try again".to_owned()))
    }

    /// Hands the entries of a session to `on`, oldest first, up to the last batch that was wholly written.
    pub fn entries(&self, id: SessionId, on: &mut dyn FnMut(LogEntry)) -> Result<(), StoreError> {
        let folder = self.folder.session(id);
        let mut scan = Scan::new(&folder, LogPosition::START);
        let mut batch = Vec::new();
        while let Some(body) = scan.next()? {
            batch.push(record::decode(&body)?);
            if record::in_batch(&body) == InBatch::Last {
                batch.drain(..).for_each(&mut *on);
            }
        }
        Ok(())
    }

    /// How long the log of a session is, in bytes: it changes with every entry.
    pub fn length(&self, id: SessionId) -> u64 {
        let Ok(entries) = fs::read_dir(self.folder.session(id)) else { return 0 };
        let logs =
            entries.filter_map(Result::ok).filter(|entry| entry.path().extension().is_some_and(|end| end == "log"));
        logs.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Copied {
    Steadily,
    /// Somebody wrote meanwhile.
    WhileWritten,
}

/// Copies a database and its log of changes.
fn copied(from: &Path, to: &Path) -> io::Result<Copied> {
    let (from_log, to_log) = (with_end(from), with_end(to));
    let before = [state(from)?, state(&from_log)?];
    fs::copy(from, to)?;
    match fs::copy(&from_log, &to_log) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if to_log.exists() {
                fs::remove_file(&to_log)?;
            }
        }
        copied => drop(copied?),
    }
    let is_steady = before == [state(from)?, state(&from_log)?];
    Ok(if is_steady { Copied::Steadily } else { Copied::WhileWritten })
}

fn with_end(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push("-wal");
    name.into()
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
        assert_eq!((read(), reader.length(record.id)), (vec![], 0));
        writer.append(&[entry(1), entry(2)]).unwrap();
        let length = reader.length(record.id);
        assert_eq!(read(), [entry(1), entry(2)]);
        writer.append(&[entry(3)]).unwrap();
        assert_eq!(read().len(), 3);
        assert!(reader.length(record.id) > length);
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["sessions"], "no copy is left behind");
    }
}
