//! The tables, and the steps that lead to them from any version before.

use std::fs::File;
use std::io;
use std::path::Path;

use gembridge_core::store::StoreError;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::super::files::{failure, private_file, read_up_to};
use super::refusal;

/// Step `n` leads from `user_version` `n` to `n + 1`. A released step is never changed.
const MIGRATIONS: [&str; 2] = [
    "
    CREATE TABLE sessions (
        id            TEXT PRIMARY KEY NOT NULL,
        principal     TEXT NOT NULL,
        agent         TEXT NOT NULL,
        agent_session TEXT,
        workspace     BLOB,
        model         TEXT,
        mode          TEXT,
        title         TEXT,
        created       INTEGER NOT NULL,
        updated       INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX sessions_by_change ON sessions (updated, id);
    CREATE INDEX sessions_by_principal ON sessions (principal, updated, id);
",
    "
    ALTER TABLE sessions ADD COLUMN last INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN last_turn INTEGER;
    ALTER TABLE sessions ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE log_chunks (
        session BLOB NOT NULL,
        first   INTEGER NOT NULL,
        entries BLOB NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX log_chunks_by_session ON log_chunks (session, first);
    CREATE TABLE turns (
        session BLOB NOT NULL,
        turn    INTEGER NOT NULL,
        after   INTEGER NOT NULL,
        at      INTEGER NOT NULL,
        PRIMARY KEY (session, turn)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE totals (
        archived INTEGER NOT NULL,
        bytes    INTEGER NOT NULL
    ) STRICT;
    INSERT INTO totals (archived, bytes) VALUES (0, 0);
",
];
const NEWEST: u32 = 2;

/// Where `SQLite`'s file header keeps `user_version`, big-endian.
const VERSION_OFFSET: usize = 60;
const MAGIC: &[u8] = b"SQLite format 3\0";

/// `SQLite`'s name for a file that can be made shorter bit by bit; otherwise it stays as long as it ever was.
const BY_AND_BY: u32 = 2;
/// Logs are most of the file, in rows of kilobytes: pages of 4 kB would take four times as many writes.
const PAGE: u32 = 16 << 10;
/// The write-ahead log is cut back to this once its content is in the database.
const LARGEST_WAL: u32 = 4 << 20;
/// How many empty pages leave the file in one go: nobody's commit waits long for it.
const PAGES_AT_ONCE: u32 = 256;

pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    // SQLite would make it readable by others.
    let file = private_file().create(true).truncate(false).open(path);
    let file = file.map_err(|error| failure(&error))?;
    let version = version_in_header(&file).map_err(|error| failure(&error))?;
    refuse_newer(path, version)?;
    drop(file);

    let mut connection = Connection::open(path).map_err(|error| refusal(&error))?;
    prepare(path, &mut connection)?;
    Ok(connection)
}

fn prepare(path: &Path, connection: &mut Connection) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| refusal(&error);
    // Until the version is known, not even closing may write to the file.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failed)?;
    // One process has the folder, so the shared memory of the write-ahead log is not needed: it would be a mapped
    // file, and a full disk would end the process instead of a call.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE").map_err(failed)?;
    let version = connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0)).map_err(failed)?;
    refuse_newer(path, version)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(failed)?;
    // Holds for a file that is empty yet.
    connection.pragma_update(None, "page_size", PAGE).map_err(failed)?;
    if let Err(error) = let_it_shrink(connection) {
        // A full disk, for one: what is there can be used all the same.
        tracing::warn!(%error, "the database of session records keeps its length until the next start");
    }
    connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    connection.pragma_update(None, "journal_size_limit", LARGEST_WAL).map_err(failed)?;
    // Commits are few and large. With each of them in the file itself, the journal and the file hold everything between
    // them, and another process can read it so.
    connection.pragma_update(None, "wal_autocheckpoint", 1).map_err(failed)?;
    migrate(connection, version).map_err(failed)
}

fn let_it_shrink(connection: &Connection) -> Result<(), rusqlite::Error> {
    let vacuum = connection.pragma_query_value(None, "auto_vacuum", |row| row.get::<_, u32>(0))?;
    if vacuum != BY_AND_BY {
        // It holds for a file that is written from its beginning.
        connection.pragma_update(None, "auto_vacuum", BY_AND_BY)?;
        connection.execute_batch("VACUUM")?;
    }
    Ok(())
}

/// Gives the disk back what deleted rows took, a bounded part of it; how many pages.
pub(in super::super) fn give_back(connection: &Connection) -> Result<u32, StoreError> {
    let free = || connection.pragma_query_value(None, "freelist_count", |row| row.get::<_, u32>(0));
    let before = free().map_err(|error| refusal(&error))?;
    // Each step frees one page.
    connection.pragma(None, "incremental_vacuum", PAGES_AT_ONCE, |_| Ok(())).map_err(|error| refusal(&error))?;
    Ok(before.saturating_sub(free().map_err(|error| refusal(&error))?))
}

fn migrate(connection: &mut Connection, version: u32) -> Result<(), rusqlite::Error> {
    let transaction = connection.transaction()?;
    for (step, next) in MIGRATIONS.iter().zip(1..).skip(version as usize) {
        let next: u32 = next;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", next)?;
    }
    transaction.commit()
}

fn refuse_newer(path: &Path, version: u32) -> Result<(), StoreError> {
    if version <= NEWEST {
        return Ok(());
    }
    Err(StoreError::Refused(format!(
        "`{}` was written by a newer version of gembridge (schema {version}, this one knows {NEWEST}); \
         use that version, or another state folder",
        path.display()
    )))
}

fn version_in_header(file: &File) -> io::Result<u32> {
    let header = read_up_to(file, 0, VERSION_OFFSET + 4)?;
    let version = header.get(VERSION_OFFSET..).and_then(|bytes| bytes.try_into().ok());
    // What is no database at all is for SQLite to say.
    Ok(version.filter(|_| header.starts_with(MAGIC)).map_or(0, u32::from_be_bytes))
}
