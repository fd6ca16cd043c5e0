//! The database of OpenCode, `opencode.db`. It also holds credentials, in tables that are never asked for.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, Row};
use serde_json::{Value, json};

use super::{facts, message};
use crate::output::Output;
use crate::session::Facts;

/// A row of the table of sessions.
pub(super) struct Session {
    pub id: String,
    pub parent: Option<String>,
    pub directory: PathBuf,
    pub updated: u64,
}

/// Opens the database without ever writing beside it. What an OpenCode that runs has not yet put into the file itself
/// stands in the file `-wal`; without that file nothing can change while it is read.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let is_live = fs::metadata(Path::new(&log)).is_ok_and(|found| found.len() > 0);
    let mode = if is_live { "mode=ro" } else { "immutable=1" };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(format!("file:{}?{mode}", encoded(path)), flags)
}

/// The path as a URI has it.
fn encoded(path: &Path) -> String {
    use std::fmt::Write as _;
    path.as_os_str().as_encoded_bytes().iter().fold(String::new(), |mut uri, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(char::from(*byte)),
            other => write!(uri, "%{other:02X}").expect("writing to a String cannot fail"),
        }
        uri
    })
}

pub(super) fn sessions(path: &Path) -> rusqlite::Result<Vec<Session>> {
    let database = open(path)?;
    let mut query = database.prepare("SELECT id, parent_id, directory, time_updated FROM session")?;
    let rows = query.query_map([], |row| {
        Ok(Session {
            id: row.get(0)?,
            parent: row.get(1)?,
            directory: PathBuf::from(row.get::<_, String>(2)?),
            updated: u64::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
        })
    })?;
    rows.collect()
}

pub(super) fn read(path: &Path, id: &str, out: &mut Output<'_>) -> Facts {
    out.at_file(path);
    let mut facts = Facts::default();
    if let Err(error) = read_rows(path, id, &mut facts, out) {
        out.damaged_file(&format!("session `{id}`: {error}"));
    }
    facts
}

fn read_rows(path: &Path, id: &str, known: &mut Facts, out: &mut Output<'_>) -> rusqlite::Result<()> {
    let database = open(path)?;
    let session = "SELECT title, version, directory, time_created, time_updated FROM session WHERE id = ?1";
    *known = database.query_row(session, [id], |row| {
        let time = json!({ "created": row.get::<_, i64>(3)?, "updated": row.get::<_, i64>(4)? });
        let [title, version, directory] = [row.get::<_, String>(0)?, row.get(1)?, row.get(2)?];
        Ok(facts(&json!({ "title": title, "version": version, "directory": directory, "time": time })))
    })?;
    let mut messages =
        database.prepare("SELECT id, data FROM message WHERE session_id = ?1 ORDER BY time_created, id")?;
    let mut parts = database.prepare("SELECT id, data FROM part WHERE message_id = ?1 ORDER BY id")?;
    let mut rows = messages.query([id])?;
    while let Some(row) = rows.next()? {
        let Some((message_id, info)) = parsed(row, "message", out)? else { continue };
        let mut found = Vec::new();
        let mut of_message = parts.query([&message_id])?;
        while let Some(row) = of_message.next()? {
            found.extend(parsed(row, "part", out)?.map(|(_, part)| part));
        }
        message(&message_id, &info, &found, known, out);
    }
    Ok(())
}

/// The id and the JSON of a row. A row that is damaged is reported by its id.
fn parsed(row: &Row<'_>, table: &str, out: &mut Output<'_>) -> rusqlite::Result<Option<(String, Value)>> {
    let id: String = row.get(0)?;
    let data = row.get_ref(1)?.as_bytes().unwrap_or_default();
    match serde_json::from_slice(data) {
        Ok(data) => Ok(Some((id, data))),
        Err(error) => {
            out.damaged_file(&format!("{table} `{id}`: {error}"));
            Ok(None)
        }
    }
}
