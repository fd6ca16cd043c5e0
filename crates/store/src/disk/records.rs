//! Session records that changed and are in the journal, but not in the database yet: many changes become one row.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gembridge_core::model::SessionId;
use gembridge_core::store::{SessionRecord, StoreError};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::database;
use super::frame::{self, Frame, Kind};

#[derive(Default)]
pub(super) struct PendingRecords {
    changed: Mutex<HashMap<SessionId, Changed>>,
}

struct Changed {
    to: Change,
    /// Counts the changes, so that one that comes while an earlier one is committed stays.
    version: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Created(SessionRecord),
    /// Changes a session that is there, and makes none.
    Updated(SessionRecord),
    Deleted,
}

impl Change {
    /// What a frame of the journal says; `None` for one of a log, or one that cannot be read.
    pub fn of(frame: &Frame) -> Option<Self> {
        match frame.kind {
            Kind::Entries => None,
            Kind::Created => decode(&frame.payload).map(Self::Created),
            Kind::Updated => decode(&frame.payload).map(Self::Updated),
            Kind::Deleted => Some(Self::Deleted),
        }
    }

    /// The frame that says it.
    pub fn encode(&self, id: SessionId, out: &mut Vec<u8>) -> Result<(), StoreError> {
        frame::begin(out);
        let kind = match self {
            Self::Created(record) => put(record, out).map(|()| Kind::Created)?,
            Self::Updated(record) => put(record, out).map(|()| Kind::Updated)?,
            Self::Deleted => Kind::Deleted,
        };
        let too_large = || StoreError::Refused("a record is too large to be stored".to_owned());
        frame::finish(out, kind, id).ok_or_else(too_large)
    }

    /// Both changes as one. A session that was deleted stays so: whoever had it open may have noted something since.
    pub fn then(self, later: Self) -> Self {
        match (self, later) {
            (Self::Deleted, Self::Updated(_)) => Self::Deleted,
            (Self::Created(_), Self::Updated(record)) => Self::Created(record),
            (_, later) => later,
        }
    }

    pub fn write(&self, id: SessionId, connection: &Connection) -> Result<(), StoreError> {
        match self {
            Self::Created(record) => database::create(connection, record),
            Self::Updated(record) => database::update(connection, record),
            Self::Deleted => database::delete(connection, id),
        }
    }

    pub fn into_record(self) -> Option<SessionRecord> {
        match self {
            Self::Created(record) | Self::Updated(record) => Some(record),
            Self::Deleted => None,
        }
    }
}

/// What is in a transaction; it leaves the memory once that is committed.
pub(super) struct Written(Vec<(SessionId, u64)>);

impl PendingRecords {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Changed>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn change(&self, id: SessionId, to: Change) {
        let mut changed = self.lock();
        let changed_now = match changed.remove(&id) {
            Some(earlier) => Changed { to: earlier.to.then(to), version: earlier.version + 1 },
            None => Changed { to, version: 0 },
        };
        changed.insert(id, changed_now);
    }

    pub fn get(&self, id: SessionId) -> Option<Change> {
        self.lock().get(&id).map(|changed| changed.to.clone())
    }

    /// Brings the rows up to date, inside the transaction of `connection`.
    pub fn write(&self, connection: &Connection) -> Result<Written, StoreError> {
        let changes: Vec<_> =
            self.lock().iter().map(|(id, changed)| (*id, changed.version, changed.to.clone())).collect();
        for (id, _, change) in &changes {
            change.write(*id, connection)?;
        }
        Ok(Written(changes.into_iter().map(|(id, version, _)| (id, version)).collect()))
    }

    /// The transaction is committed.
    pub fn written(&self, written: &Written) {
        let mut changed = self.lock();
        for (id, version) in &written.0 {
            if changed.get(id).is_some_and(|now| now.version == *version) {
                changed.remove(id);
            }
        }
        if changed.capacity() > 4 * changed.len() + 64 {
            changed.shrink_to_fit();
        }
    }
}

/// A record as the journal holds it. A path need not be text.
#[derive(Serialize, Deserialize)]
struct Stored {
    record: SessionRecord,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<Vec<u8>>,
}

/// Appends the record as the payload of a frame.
fn put(record: &SessionRecord, out: &mut Vec<u8>) -> Result<(), StoreError> {
    let odd_path = record.workspace.as_ref().filter(|path| path.to_str().is_none());
    let mut stored =
        Stored { record: record.clone(), workspace: odd_path.map(|path| path.as_os_str().as_bytes().to_owned()) };
    if stored.workspace.is_some() {
        stored.record.workspace = None;
    }
    serde_json::to_writer(out, &stored)
        .map_err(|error| StoreError::Refused(format!("a record cannot be stored: {error}")))
}

fn decode(payload: &[u8]) -> Option<SessionRecord> {
    let Stored { mut record, workspace } = serde_json::from_slice(payload).ok()?;
    if let Some(bytes) = workspace {
        record.workspace = Some(PathBuf::from(OsString::from_vec(bytes)));
    }
    Some(record)
}
