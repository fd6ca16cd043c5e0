//! Session records as rows.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::sync::Arc;

use gembridge_core::model::{AgentName, Principal, SessionId, Timestamp};
use gembridge_core::store::{SessionRecord, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{log, refusal};

/// Makes the row. One that is there, since the journal is read again after a crash, is brought up to date.
pub(in super::super) fn create(connection: &Connection, record: &SessionRecord) -> Result<(), StoreError> {
    write(
        connection,
        "INSERT INTO sessions (id, principal, agent, agent_session, workspace, model, mode, title, created, updated) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
         ON CONFLICT (id) DO UPDATE SET principal = ?2, agent = ?3, agent_session = ?4, workspace = ?5, \
         model = ?6, mode = ?7, title = ?8, created = ?9, updated = ?10",
        record,
    )
}

/// Brings the row up to date; none is made.
pub(in super::super) fn update(connection: &Connection, record: &SessionRecord) -> Result<(), StoreError> {
    write(
        connection,
        "UPDATE sessions SET principal = ?2, agent = ?3, agent_session = ?4, workspace = ?5, model = ?6, mode = ?7, \
         title = ?8, created = ?9, updated = ?10 WHERE id = ?1",
        record,
    )
}

fn write(connection: &Connection, sql: &str, record: &SessionRecord) -> Result<(), StoreError> {
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| {
            statement.execute(params![
                record.id.to_string(),
                record.principal.as_str(),
                record.agent.as_str(),
                record.agent_session.as_deref(),
                record.workspace.as_ref().map(|path| path.as_os_str().as_bytes()),
                record.model.as_deref(),
                record.mode.as_deref(),
                record.title.as_deref(),
                to_integer(record.created),
                to_integer(record.updated),
            ])
        })
        .map(drop)
        .map_err(|error| refusal(&error))
}

/// Forgets the session, its record and its log.
pub(in super::super) fn delete(connection: &Connection, id: SessionId) -> Result<(), StoreError> {
    let bytes = log::delete(connection, id).map_err(|error| refusal(&error))?;
    connection
        .prepare_cached("DELETE FROM sessions WHERE id = ?1")
        .and_then(|mut statement| statement.execute([id.to_string()]))
        .map_err(|error| refusal(&error))?;
    log::count_bytes(connection, -log::signed(bytes))
}

pub(in super::super) fn record(connection: &Connection, id: SessionId) -> Result<SessionRecord, StoreError> {
    connection
        .prepare_cached("SELECT * FROM sessions WHERE id = ?1")
        .and_then(|mut statement| statement.query_row([id.to_string()], from_row).optional())
        .map_err(|error| refusal(&error))?
        .ok_or(StoreError::Unknown(id))
}

pub(in super::super) fn exists(connection: &Connection, id: SessionId) -> Result<bool, StoreError> {
    match record(connection, id) {
        Ok(_) => Ok(true),
        Err(StoreError::Unknown(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

pub(in super::super) fn list(
    connection: &Connection,
    principal: Option<&Principal>,
    limit: usize,
) -> Result<Vec<SessionRecord>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = match principal {
        Some(principal) => connection
            .prepare_cached("SELECT * FROM sessions WHERE principal = ?1 ORDER BY updated DESC, id DESC LIMIT ?2")
            .and_then(|mut statement| statement.query_map(params![principal.as_str(), limit], from_row)?.collect()),
        None => connection
            .prepare_cached("SELECT * FROM sessions ORDER BY updated DESC, id DESC LIMIT ?1")
            .and_then(|mut statement| statement.query_map([limit], from_row)?.collect()),
    };
    rows.map_err(|error| refusal(&error))
}

/// The newest id; they sort by the time they were made.
pub(in super::super) fn newest(connection: &Connection) -> Result<SessionId, StoreError> {
    let id: Option<String> =
        connection.query_row("SELECT max(id) FROM sessions", (), |row| row.get(0)).map_err(|error| refusal(&error))?;
    Ok(id.and_then(|id| id.parse().ok()).unwrap_or_else(|| SessionId::from_bytes([0; 16])))
}

/// A place in the order of use, longest ago first.
#[derive(Clone)]
pub(in super::super) struct Oldest {
    updated: i64,
    id: String,
}

impl Oldest {
    pub(in super::super) const START: Self = Self { updated: i64::MIN, id: String::new() };

    pub(in super::super) fn after(record: &SessionRecord) -> Self {
        Self { updated: to_integer(record.updated), id: record.id.to_string() }
    }
}

/// The records behind a place, longest ago first.
pub(in super::super) fn oldest(
    connection: &Connection,
    after: &Oldest,
    limit: usize,
) -> Result<Vec<SessionRecord>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    connection
        .prepare_cached("SELECT * FROM sessions WHERE (updated, id) > (?1, ?2) ORDER BY updated, id LIMIT ?3")
        .and_then(|mut statement| statement.query_map(params![after.updated, after.id, limit], from_row)?.collect())
        .map_err(|error| refusal(&error))
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<SessionRecord> {
    let text = |column: &str| row.get::<_, Option<Arc<str>>>(column);
    let id = row.get::<_, String>("id")?;
    let id = id
        .parse()
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error)))?;
    let workspace = row.get::<_, Option<Vec<u8>>>("workspace")?;
    Ok(SessionRecord {
        id,
        principal: Principal::new(row.get::<_, String>("principal")?),
        agent: AgentName::new(row.get::<_, String>("agent")?),
        agent_session: text("agent_session")?,
        workspace: workspace.map(|bytes| PathBuf::from(OsString::from_vec(bytes))),
        model: text("model")?,
        mode: text("mode")?,
        title: text("title")?,
        created: Timestamp(from_integer(row.get("created")?)),
        updated: Timestamp(from_integer(row.get("updated")?)),
    })
}

// SQLite's integers are signed. Milliseconds stay below that bound for longer than there will be clocks.
fn to_integer(time: Timestamp) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

fn from_integer(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
