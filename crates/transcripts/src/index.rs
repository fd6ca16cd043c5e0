//! The words of all sessions, in a file of the caller's that can be made again at any time.
//!
//! A session is a row with its version; what it says is cut into passages, the newest sessions last. A query takes the
//! newest passages that have all its words, up to a bound, and ranks those: ranking every passage with a common word would
//! take as long as reading them.

mod passages;
mod query;
mod ranking;
mod schema;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use gembridge_unified::tool_names::ToolNames;
use gembridge_unified::{Originals, Role};
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::Serialize;

use crate::agent::Agent;
use crate::damage::Damage;
use crate::output::{Piece, ReadOptions};
use crate::session::{Located, read};
use crate::summary::Titles;
pub use query::Query;
use ranking::Candidate;

/// Passages that are ranked, the newest that fit the query.
const RANKED: usize = 500;
/// Passages of one session among them: a long session must not hide all others.
const OF_ONE_SESSION: usize = 20;
/// Sessions that are looked into for those that are wanted.
const SESSIONS: usize = 10_000;

#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("the index of sessions `{}` cannot be used: {error}; remove it, it is made again", .path.display())]
    Unusable { path: PathBuf, error: rusqlite::Error },
    #[error("there is no word in the query; give at least one letter or digit")]
    NoWord,
}

/// A session in which all words of a query stand in one passage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hit {
    pub agent: &'static str,
    pub id: String,
    pub parent: Option<String>,
    pub title: Option<String>,
    pub model: Option<String>,
    pub project: Option<PathBuf>,
    /// In milliseconds since 1970.
    pub updated: u64,
    /// Larger is better.
    pub score: f64,
    /// How many passages of it have all the words; no more than 20 are counted.
    pub passages: usize,
    /// Who said the best of them, and when.
    pub role: Role,
    pub at: u64,
    /// The best passage around its first word of the query.
    pub snippet: String,
}

/// Which sessions are asked for.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub agent: Option<Agent>,
    /// Sessions of this folder and what lies in it.
    pub project: Option<PathBuf>,
}

pub struct Index {
    path: PathBuf,
    connection: Connection,
}

impl Index {
    /// Opens the file, or makes it. One that another version made is made anew.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, IndexError> {
        let path = path.into();
        match schema::open(&path) {
            Ok(connection) => Ok(Self { path, connection }),
            Err(error) => Err(IndexError::Unusable { path, error }),
        }
    }

    /// Reads what has changed since the last time. `on` hears how many of the changed sessions are done, of how many.
    pub fn update(
        &mut self,
        sessions: &[Located],
        on: &mut dyn FnMut(usize, usize),
    ) -> Result<Vec<Damage>, IndexError> {
        let path = self.path.clone();
        self.updated(sessions, on).map_err(|error| IndexError::Unusable { path, error })
    }

    fn updated(&mut self, sessions: &[Located], on: &mut dyn FnMut(usize, usize)) -> rusqlite::Result<Vec<Damage>> {
        let known = self.known()?;
        let mut gone: HashMap<_, _> = known.iter().map(|(name, (row, _))| (name.clone(), *row)).collect();
        let mut changed = Vec::new();
        for session in sessions {
            let name = (session.agent.name().to_owned(), session.id.clone());
            gone.remove(&name);
            let version = session.version().cast_signed();
            match known.get(&name) {
                Some((_, of_index)) if *of_index == version => {}
                Some((row, _)) => changed.push((session, version, Some(*row))),
                None => changed.push((session, version, None)),
            }
        }
        // Rows are numbered as they come, and a query begins with the newest.
        changed.sort_by_key(|(session, ..)| session.modified);
        let mut damages = Vec::new();
        let total = changed.len();
        let transaction = self.connection.transaction()?;
        for row in gone.into_values() {
            remove(&transaction, row)?;
        }
        transaction.commit()?;
        for (done, (session, version, row)) in changed.into_iter().enumerate() {
            on(done, total);
            let transaction = self.connection.transaction()?;
            if let Some(row) = row {
                remove(&transaction, row)?;
            }
            insert(&transaction, session, version, &mut damages)?;
            transaction.commit()?;
        }
        Ok(damages)
    }

    /// The sessions of the index: by agent and id their row and version.
    fn known(&self) -> rusqlite::Result<HashMap<(String, String), (i64, i64)>> {
        let mut query = self.connection.prepare("SELECT agent, id, row, version FROM sessions")?;
        let rows = query.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), (row.get(2)?, row.get(3)?))))?;
        rows.collect()
    }

    /// The sessions that fit, the best first.
    pub fn search(&self, query: &Query, wanted: &Wanted, limit: usize) -> Result<Vec<Hit>, IndexError> {
        let failed = |error| IndexError::Unusable { path: self.path.clone(), error };
        let candidates = self.candidates(query, wanted).map_err(failed)?;
        let ranked = ranking::ranked(candidates, query);
        ranked
            .into_iter()
            .take(limit)
            .map(|ranked| self.hit(&ranked, query))
            .collect::<rusqlite::Result<_>>()
            .map_err(failed)
    }

    fn candidates(&self, query: &Query, wanted: &Wanted) -> rusqlite::Result<Vec<Candidate>> {
        let sessions = self.wanted(wanted)?;
        let mut statement = self.connection.prepare(
            "SELECT passages.session, passages.role, passages.at, passages.body FROM words \
             JOIN passages ON passages.row = words.rowid WHERE words MATCH ?1 AND words.rowid < ?2 \
             ORDER BY words.rowid DESC",
        )?;
        let mut first_row = self.connection.prepare("SELECT min(row) FROM passages WHERE session = ?1")?;
        let (mut candidates, mut below) = (Vec::new(), i64::MAX);
        let expression = query.expression();
        for _ in 0..SESSIONS {
            let mut rows = statement.query(params![expression, below])?;
            let mut of_session = (0, 0);
            // The rows of a session stand together, so that one which has enough is passed over at once.
            let passed = loop {
                let Some(row) = rows.next()? else { return Ok(candidates) };
                let session: i64 = row.get(0)?;
                if sessions.as_ref().is_some_and(|sessions| !sessions.contains(&session)) {
                    break session;
                }
                let (role, at, body) = (row.get(1)?, row.get::<_, i64>(2)?, row.get(3)?);
                candidates.push(Candidate { session, role: schema::role(role), at: at.cast_unsigned(), body });
                if candidates.len() == RANKED {
                    return Ok(candidates);
                }
                of_session = if of_session.0 == session { (session, of_session.1 + 1) } else { (session, 1) };
                if of_session.1 == OF_ONE_SESSION {
                    break session;
                }
            };
            below = first_row.query_row([passed], |row| row.get(0))?;
        }
        Ok(candidates)
    }

    /// The rows of the sessions that are wanted; `None` for all.
    fn wanted(&self, wanted: &Wanted) -> rusqlite::Result<Option<HashSet<i64>>> {
        if wanted.agent.is_none() && wanted.project.is_none() {
            return Ok(None);
        }
        let mut statement = self.connection.prepare("SELECT row, agent, project FROM sessions")?;
        let mut rows = statement.query([])?;
        let mut found = HashSet::new();
        while let Some(row) = rows.next()? {
            let (agent, project): (String, Option<String>) = (row.get(1)?, row.get(2)?);
            let is_of_agent = wanted.agent.is_none_or(|wanted| wanted.name() == agent);
            let is_in =
                |folder: &PathBuf| project.as_deref().is_some_and(|project| Path::new(project).starts_with(folder));
            if is_of_agent && wanted.project.as_ref().is_none_or(is_in) {
                found.insert(row.get(0)?);
            }
        }
        Ok(Some(found))
    }

    fn hit(&self, ranked: &ranking::Ranked, query: &Query) -> rusqlite::Result<Hit> {
        let session = "SELECT agent, id, parent, title, model, project, updated FROM sessions WHERE row = ?1";
        let found = self.connection.query_row(session, [ranked.best.session], |row| {
            let agent: String = row.get(0)?;
            Ok(Hit {
                agent: Agent::of_name(&agent).map_or("unknown", Agent::name),
                id: row.get(1)?,
                parent: row.get(2)?,
                title: row.get(3)?,
                model: row.get(4)?,
                project: row.get::<_, Option<String>>(5)?.map(PathBuf::from),
                updated: row.get::<_, i64>(6)?.cast_unsigned(),
                score: ranked.score,
                passages: ranked.passages,
                role: ranked.best.role,
                at: ranked.best.at,
                snippet: query.snippet(&ranked.best.body),
            })
        });
        // Another process may have replaced the session meanwhile.
        found.optional().map(|found| found.unwrap_or_else(|| Hit::of_replaced(ranked, query)))
    }
}

impl Hit {
    fn of_replaced(ranked: &ranking::Ranked, query: &Query) -> Self {
        Self {
            agent: "unknown",
            id: String::new(),
            parent: None,
            title: None,
            model: None,
            project: None,
            updated: ranked.best.at,
            score: ranked.score,
            passages: ranked.passages,
            role: ranked.best.role,
            at: ranked.best.at,
            snippet: query.snippet(&ranked.best.body),
        }
    }
}

fn remove(connection: &Connection, row: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM words WHERE rowid IN (SELECT row FROM passages WHERE session = ?1)")?
        .execute([row])?;
    connection.prepare_cached("DELETE FROM passages WHERE session = ?1")?.execute([row])?;
    connection.prepare_cached("DELETE FROM sessions WHERE row = ?1")?.execute([row])?;
    Ok(())
}

fn insert(connection: &Connection, session: &Located, version: i64, damages: &mut Vec<Damage>) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO sessions (agent, id, version, parent, updated) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![session.agent.name(), session.id, version, session.parent, session.modified.cast_signed()])?;
    let row = connection.last_insert_rowid();
    let mut passage =
        connection.prepare_cached("INSERT INTO passages (session, role, at, body) VALUES (?1, ?2, ?3, ?4)")?;
    let mut words = connection.prepare_cached("INSERT INTO words (rowid, body) VALUES (?1, ?2)")?;
    let (mut titles, mut failed) = (Titles::default(), Ok(()));
    let options = ReadOptions { originals: Originals::Leave, tool_names: ToolNames::Extended };
    let facts = read(session, options, &mut |piece| match piece {
        Piece::Damage(damage) => damages.push(damage),
        Piece::Message(_) if failed.is_err() => {}
        Piece::Message(message) => {
            titles.look(&message);
            failed = passages::of(&message).iter().try_for_each(|body| {
                passage.execute(params![row, schema::number(message.role), message.timestamp.cast_signed(), body])?;
                words.execute(params![connection.last_insert_rowid(), body]).map(drop)
            });
        }
    });
    failed?;
    let title = titles.title(&facts);
    let project = facts.project.as_ref().map(|project| project.to_string_lossy().into_owned());
    if let Some(title) = &title {
        // The title is a passage too: it may be the agent's own.
        passage.execute(params![row, schema::number(Role::System), session.modified.cast_signed(), title])?;
        words.execute(params![connection.last_insert_rowid(), title])?;
    }
    let updated = facts.updated.unwrap_or(session.modified).cast_signed();
    connection
        .prepare_cached("UPDATE sessions SET title = ?2, model = ?3, project = ?4, updated = ?5 WHERE row = ?1")?
        .execute(params![row, title, facts.model, project, updated])?;
    Ok(())
}
