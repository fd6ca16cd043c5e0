//! A store that lives as long as its process: for tests, for embedding, and for one-off runs.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{LogWriter, Logs, Records, Reopened, SessionRecord, StoreError, TurnStart, check_continuity};
use crate::BoxFuture;
use crate::log::LogEntry;
use crate::model::{Principal, Seq, SessionId, TurnId};

#[derive(Clone, Default)]
pub struct MemoryStore {
    sessions: Arc<Mutex<HashMap<SessionId, Session>>>,
}

struct Session {
    record: SessionRecord,
    log: Vec<LogEntry>,
    turns: Vec<TurnStart>,
    has_writer: bool,
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        lock(&self.sessions)
    }

    fn with<T>(&self, id: SessionId, act: impl FnOnce(&mut Session) -> T) -> Result<T, StoreError> {
        self.lock().get_mut(&id).map(act).ok_or(StoreError::Unknown(id))
    }

    fn writer(&self, id: SessionId) -> Box<dyn LogWriter> {
        Box::new(MemoryWriter { sessions: Arc::clone(&self.sessions), id })
    }
}

fn lock(sessions: &Mutex<HashMap<SessionId, Session>>) -> MutexGuard<'_, HashMap<SessionId, Session>> {
    // Every change is a single push or replacement, so a panic elsewhere leaves nothing half done.
    sessions.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Records for MemoryStore {
    fn list(
        &self,
        principal: Option<Principal>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>> {
        let sessions = self.lock();
        let mut records: Vec<_> = sessions
            .values()
            .map(|session| &session.record)
            .filter(|record| principal.as_ref().is_none_or(|owner| *owner == record.principal))
            .cloned()
            .collect();
        records.sort_by_key(|record| std::cmp::Reverse((record.updated, record.id)));
        records.truncate(limit);
        Box::pin(ready(Ok(records)))
    }

    fn record(&self, id: SessionId) -> BoxFuture<'_, Result<SessionRecord, StoreError>> {
        Box::pin(ready(self.with(id, |session| session.record.clone())))
    }

    fn update(&self, record: SessionRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(ready(self.with(record.id, |session| session.record = record)))
    }
}

impl Logs for MemoryStore {
    fn create(&self, record: SessionRecord) -> BoxFuture<'_, Result<Box<dyn LogWriter>, StoreError>> {
        let id = record.id;
        let mut sessions = self.lock();
        if sessions.contains_key(&id) {
            return Box::pin(ready(Err(StoreError::Refused(format!("session `{id}` is in the store already")))));
        }
        let session = Session { record, log: Vec::new(), turns: Vec::new(), has_writer: true };
        sessions.insert(id, session);
        Box::pin(ready(Ok(self.writer(id))))
    }

    fn reopen(&self, id: SessionId, tail: usize) -> BoxFuture<'_, Result<Reopened, StoreError>> {
        let reopened = self.with(id, |session| {
            if std::mem::replace(&mut session.has_writer, true) {
                return Err(StoreError::Refused(format!("session `{id}` is open already")));
            }
            let tail = session.log[session.log.len().saturating_sub(tail)..].to_vec();
            Ok(Reopened {
                record: session.record.clone(),
                writer: self.writer(id),
                tail,
                last: session.last(),
                last_turn: session.turns.last().map(|start| start.turn),
            })
        });
        Box::pin(ready(reopened.and_then(|reopened| reopened)))
    }

    fn read(
        &self,
        id: SessionId,
        after: Seq,
        until: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<LogEntry>, StoreError>> {
        Box::pin(ready(self.with(id, |session| {
            let start = session.log.partition_point(|entry| entry.seq <= after);
            let wanted = session.log[start..].iter().take_while(|entry| entry.seq <= until);
            wanted.take(limit).cloned().collect()
        })))
    }

    fn turn_starts(&self, id: SessionId, turns: usize) -> BoxFuture<'_, Result<Vec<TurnStart>, StoreError>> {
        Box::pin(ready(self.with(id, |session| session.turns[session.turns.len().saturating_sub(turns)..].to_vec())))
    }

    fn delete(&self, id: SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        let removed = self.lock().remove(&id);
        Box::pin(ready(removed.map(drop).ok_or(StoreError::Unknown(id))))
    }
}

impl Session {
    fn last(&self) -> Seq {
        self.log.last().map_or(Seq::START, |entry| entry.seq)
    }

    fn push(&mut self, entry: &LogEntry) {
        let newest: Option<TurnId> = self.turns.last().map(|start| start.turn);
        if let Some(turn) = entry.turn.filter(|turn| newest.is_none_or(|newest| *turn > newest)) {
            self.turns.push(TurnStart { turn, after: self.last(), at: entry.at });
        }
        self.log.push(entry.clone());
    }
}

struct MemoryWriter {
    sessions: Arc<Mutex<HashMap<SessionId, Session>>>,
    id: SessionId,
}

impl LogWriter for MemoryWriter {
    fn append(&mut self, entries: &[LogEntry]) -> Result<(), StoreError> {
        let mut sessions = lock(&self.sessions);
        let session = sessions.get_mut(&self.id).ok_or(StoreError::Unknown(self.id))?;
        check_continuity(entries, session.last().next().0)?;
        for entry in entries {
            session.push(entry);
        }
        Ok(())
    }

    fn sync(&mut self) -> BoxFuture<'static, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }
}

impl Drop for MemoryWriter {
    fn drop(&mut self) {
        if let Some(session) = lock(&self.sessions).get_mut(&self.id) {
            session.has_writer = false;
        }
    }
}
