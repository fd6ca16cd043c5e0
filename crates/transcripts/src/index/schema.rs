//! The tables of the index. They hold nothing that cannot be read again, so another version is no reason to convert them.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use gembridge_unified::Role;
use rusqlite::Connection;

/// Grows with every change of the tables, or of what is written into them.
const VERSION: i64 = 1;

/// How long to wait for another process that writes.
const PATIENCE: Duration = Duration::from_secs(10);

const TABLES: &str = "
    CREATE TABLE sessions (
        row     INTEGER PRIMARY KEY,
        agent   TEXT NOT NULL,
        id      TEXT NOT NULL,
        version INTEGER NOT NULL,
        parent  TEXT,
        title   TEXT,
        model   TEXT,
        project TEXT,
        updated INTEGER NOT NULL,
        UNIQUE (agent, id)
    ) STRICT;
    CREATE TABLE passages (
        row     INTEGER PRIMARY KEY AUTOINCREMENT,
        session INTEGER NOT NULL,
        role    INTEGER NOT NULL,
        at      INTEGER NOT NULL,
        body    TEXT NOT NULL
    ) STRICT;
    CREATE INDEX passages_by_session ON passages (session);
    CREATE VIRTUAL TABLE words USING fts5 (
        body, content = '', contentless_delete = 1, tokenize = \"unicode61 remove_diacritics 2\"
    );
";

pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    match connect(path) {
        Ok(connection) => Ok(connection),
        Err(error) if is_damaged(&error) => {
            // Best effort: what cannot be removed fails again below, and says so.
            for end in ["", "-wal", "-shm"] {
                let mut name = path.as_os_str().to_owned();
                name.push(end);
                drop(fs::remove_file(Path::new(&name)));
            }
            connect(path)
        }
        Err(error) => Err(error),
    }
}

fn is_damaged(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // Made by us first, so that nobody else can read it from its beginning; an error of it comes back from SQLite.
    drop(fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path));
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // What a power cut takes is read again.
    connection.pragma_update(None, "synchronous", "OFF")?;
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version != VERSION {
        transaction.execute_batch(
            "DROP TABLE IF EXISTS words; DROP TABLE IF EXISTS passages; DROP TABLE IF EXISTS sessions;",
        )?;
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()?;
    Ok(connection)
}

pub(super) fn number(role: Role) -> i64 {
    match role {
        Role::User => 0,
        Role::Assistant => 1,
        Role::System => 2,
    }
}

pub(super) fn role(number: i64) -> Role {
    match number {
        0 => Role::User,
        1 => Role::Assistant,
        _ => Role::System,
    }
}
