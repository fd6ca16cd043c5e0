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
use super::frame::{self, Kind};

#[derive(Default)]
pub(super) struct Records {
    changed: Mutex<HashMap<SessionId, Changed>>,
}

struct Changed {
    to: Change,
    /// Counts the changes, so that one that comes while an earlier one is committed stays.
    version: u64,
}

#[derive(Clone)]
pub(super) enum Change {
    Kept(SessionRecord),
    Deleted,
}

/// What is in a transaction; it leaves the memory once that is committed.
pub(super) struct Written(Vec<(SessionId, u64)>);

impl Records {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Changed>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn change(&self, id: SessionId, to: Change) {
        let mut changed = self.lock();
        match changed.get_mut(&id) {
            Some(earlier) => {
                earlier.to = to;
                earlier.version += 1;
            }
            None => drop(changed.insert(id, Changed { to, version: 0 })),
        }
    }

    pub fn get(&self, id: SessionId) -> Option<Change> {
        self.lock().get(&id).map(|changed| changed.to.clone())
    }

    /// Brings the rows up to date, inside the transaction of `connection`.
    pub fn write(&self, connection: &Connection) -> Result<Written, StoreError> {
        let changes: Vec<_> =
            self.lock().iter().map(|(id, changed)| (*id, changed.version, changed.to.clone())).collect();
        for (id, _, change) in &changes {
            match change {
                Change::Kept(record) => database::keep(connection, record)?,
                Change::Deleted => database::delete(connection, *id)?,
            }
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

/// The frame of a record.
pub(super) fn encode(record: &SessionRecord, out: &mut Vec<u8>) -> Result<(), StoreError> {
    let refused = |error: &dyn std::fmt::Display| StoreError::Refused(format!("a record cannot be stored: {error}"));
    let odd_path = record.workspace.as_ref().filter(|path| path.to_str().is_none());
    let mut stored =
        Stored { record: record.clone(), workspace: odd_path.map(|path| path.as_os_str().as_bytes().to_owned()) };
    if stored.workspace.is_some() {
        stored.record.workspace = None;
    }
    frame::begin(out);
    serde_json::to_writer(&mut *out, &stored).map_err(|error| refused(&error))?;
    frame::finish(out, Kind::Record, record.id).ok_or_else(|| refused(&"it is too large"))
}

pub(super) fn decode(payload: &[u8]) -> Option<SessionRecord> {
    let Stored { mut record, workspace } = serde_json::from_slice(payload).ok()?;
    if let Some(bytes) = workspace {
        record.workspace = Some(PathBuf::from(OsString::from_vec(bytes)));
    }
    Some(record)
}
