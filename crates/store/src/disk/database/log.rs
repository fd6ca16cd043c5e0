//! Logs as rows: stretches of records that follow each other, and where turns begin.

use bytes::Bytes;
use gembridge_core::model::{Seq, SessionId, Timestamp, TurnId};
use gembridge_core::store::{StoreError, TurnStart};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::super::record::{self, EntryBodies, PREFIX};
use super::super::tail::End;
use super::refusal;

/// Appends what follows the log's end, of batches that may begin before it. A session that is deleted takes nothing.
/// Gives how many bytes were added.
pub(in super::super) fn append(
    connection: &Connection,
    session: SessionId,
    batches: &[Bytes],
    chunk_bytes: u64,
) -> Result<u64, StoreError> {
    let Some(end) = find_end(connection, session)? else { return Ok(0) };
    let mut chunk = Chunk { connection, session, first: end.last + 1, entries: Vec::new(), added: 0 };
    let mut now = end;
    for body in batches.iter().flat_map(|batch| EntryBodies::in_bytes(batch.clone())) {
        let Some(head) = record::head(&body).filter(|head| head.seq > now.last) else { continue };
        if head.seq != now.last + 1 {
            tracing::error!(%session, entry = now.last + 1, "an entry is missing in the journal; what follows it is dropped");
            break;
        }
        let begins = head.turn.filter(|turn| now.last_turn.is_none_or(|newest| *turn > newest));
        if let Some(turn) = begins {
            insert_turn(connection, session, TurnStart { turn, after: Seq(now.last), at: head.at })?;
        }
        now = End { last: head.seq, last_turn: begins.or(now.last_turn) };
        chunk.push(&body, chunk_bytes, now.last)?;
    }
    chunk.flush(now.last)?;
    if now != end {
        connection
            .prepare_cached("UPDATE sessions SET last = ?2, last_turn = ?3, bytes = bytes + ?4 WHERE id = ?1")
            .and_then(|mut statement| {
                let turn = now.last_turn.map(|turn| signed(turn.0));
                statement.execute(params![session.to_string(), signed(now.last), turn, signed(chunk.added)])
            })
            .map_err(|error| refusal(&error))?;
    }
    Ok(chunk.added)
}

/// A row that is being filled.
struct Chunk<'c> {
    connection: &'c Connection,
    session: SessionId,
    first: u64,
    entries: Vec<u8>,
    added: u64,
}

impl Chunk<'_> {
    fn push(&mut self, body: &Bytes, most: u64, seq: u64) -> Result<(), StoreError> {
        if !self.entries.is_empty() && (self.entries.len() + PREFIX + body.len()) as u64 > most {
            self.flush(seq - 1)?;
        }
        record::put(body, &mut self.entries);
        Ok(())
    }

    /// Writes the row; the next begins after entry `last`.
    fn flush(&mut self, last: u64) -> Result<(), StoreError> {
        if self.entries.is_empty() {
            return Ok(());
        }
        self.connection
            .prepare_cached("INSERT INTO log_chunks (session, first, entries) VALUES (?1, ?2, ?3)")
            .and_then(|mut statement| {
                statement.execute(params![self.session.to_bytes(), signed(self.first), self.entries])
            })
            .map_err(|error| refusal(&error))?;
        self.added += self.entries.len() as u64;
        self.entries.clear();
        self.first = last + 1;
        Ok(())
    }
}

fn insert_turn(connection: &Connection, session: SessionId, start: TurnStart) -> Result<(), StoreError> {
    connection
        .prepare_cached("INSERT INTO turns (session, turn, after, at) VALUES (?1, ?2, ?3, ?4)")
        .and_then(|mut statement| {
            let (turn, after, at) = (signed(start.turn.0), signed(start.after.0), signed(start.at.0));
            statement.execute(params![session.to_bytes(), turn, after, at])
        })
        .map(drop)
        .map_err(|error| refusal(&error))
}

/// The end of the part of a log that is in the database; `None` for a session that is not.
pub(in super::super) fn find_end(connection: &Connection, session: SessionId) -> Result<Option<End>, StoreError> {
    connection
        .prepare_cached("SELECT last, last_turn FROM sessions WHERE id = ?1")
        .and_then(|mut statement| {
            statement
                .query_row([session.to_string()], |row| {
                    let last_turn = row.get::<_, Option<i64>>(1)?.map(|turn| TurnId(unsigned(turn)));
                    Ok(End { last: unsigned(row.get(0)?), last_turn })
                })
                .optional()
        })
        .map_err(|error| refusal(&error))
}

/// The stretch of records that holds entry `seq`.
pub(in super::super) fn chunk(connection: &Connection, session: SessionId, seq: u64) -> Result<Bytes, StoreError> {
    connection
        .prepare_cached("SELECT entries FROM log_chunks WHERE session = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1")
        .and_then(|mut statement| {
            let row = statement.query_row(params![session.to_bytes(), signed(seq)], |row| row.get::<_, Vec<u8>>(0));
            row.optional()
        })
        .map(|row| row.map(Bytes::from).unwrap_or_default())
        .map_err(|error| refusal(&error))
}

/// The newest starts of turns, newest last.
pub(in super::super) fn turn_starts(
    connection: &Connection,
    session: SessionId,
    limit: usize,
) -> Result<Vec<TurnStart>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let starts = connection
        .prepare_cached("SELECT turn, after, at FROM turns WHERE session = ?1 ORDER BY turn DESC LIMIT ?2")
        .and_then(|mut statement| {
            let rows = statement.query_map(params![session.to_bytes(), limit], |row| {
                Ok(TurnStart {
                    turn: TurnId(unsigned(row.get(0)?)),
                    after: Seq(unsigned(row.get(1)?)),
                    at: Timestamp(unsigned(row.get(2)?)),
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        });
    let mut starts = starts.map_err(|error| refusal(&error))?;
    starts.reverse();
    Ok(starts)
}

/// Forgets a log; gives how many bytes it had.
pub(super) fn delete(connection: &Connection, session: SessionId) -> rusqlite::Result<u64> {
    let bytes = connection
        .prepare_cached("SELECT bytes FROM sessions WHERE id = ?1")?
        .query_row([session.to_string()], |row| row.get::<_, i64>(0))
        .optional()?;
    connection.prepare_cached("DELETE FROM log_chunks WHERE session = ?1")?.execute([session.to_bytes()])?;
    connection.prepare_cached("DELETE FROM turns WHERE session = ?1")?.execute([session.to_bytes()])?;
    Ok(bytes.map_or(0, unsigned))
}

/// The last segment of the journal that is in the database.
pub(in super::super) fn archived(connection: &Connection) -> Result<u64, StoreError> {
    connection
        .query_row("SELECT archived FROM totals", (), |row| row.get::<_, i64>(0))
        .map(unsigned)
        .map_err(|error| refusal(&error))
}

pub(in super::super) fn set_archived(connection: &Connection, number: u64) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE totals SET archived = ?1")
        .and_then(|mut statement| statement.execute([signed(number)]))
        .map(drop)
        .map_err(|error| refusal(&error))
}

/// How many bytes all logs have together.
pub(in super::super) fn bytes(connection: &Connection) -> Result<u64, StoreError> {
    connection
        .query_row("SELECT bytes FROM totals", (), |row| row.get::<_, i64>(0))
        .map(unsigned)
        .map_err(|error| refusal(&error))
}

pub(in super::super) fn bytes_of(connection: &Connection, session: SessionId) -> Result<u64, StoreError> {
    connection
        .prepare_cached("SELECT bytes FROM sessions WHERE id = ?1")
        .and_then(|mut statement| statement.query_row([session.to_string()], |row| row.get::<_, i64>(0)).optional())
        .map(|bytes| bytes.map_or(0, unsigned))
        .map_err(|error| refusal(&error))
}

/// What is known of a log without reading it.
pub(in super::super) struct Length {
    pub session: SessionId,
    pub last: u64,
    pub bytes: u64,
}

pub(in super::super) fn lengths(connection: &Connection) -> Result<Vec<Length>, StoreError> {
    connection
        .prepare_cached("SELECT id, last, bytes FROM sessions")
        .and_then(|mut statement| {
            let rows = statement.query_map((), |row| {
                Ok((row.get::<_, String>(0)?.parse().ok(), unsigned(row.get(1)?), unsigned(row.get(2)?)))
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        })
        .map(|rows| {
            let known =
                |(session, last, bytes): (Option<SessionId>, _, _)| Some(Length { session: session?, last, bytes });
            rows.into_iter().filter_map(known).collect()
        })
        .map_err(|error| refusal(&error))
}

/// Counts bytes that came, or, with a minus, that went.
pub(in super::super) fn count_bytes(connection: &Connection, change: i64) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE totals SET bytes = max(0, bytes + ?1)")
        .and_then(|mut statement| statement.execute([change]))
        .map(drop)
        .map_err(|error| refusal(&error))
}

// SQLite's integers are signed; every number of 64 bits comes back as it was.
pub(super) fn signed(number: u64) -> i64 {
    number.cast_signed()
}

pub(super) fn unsigned(number: i64) -> u64 {
    number.cast_unsigned()
}
