//! A store in memory whose disk can be full.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use gembridge_core::BoxFuture;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{Event, Principal, Seq, SessionId, TurnId};
use gembridge_core::store::{LogWriter, Reopened, SessionRecord, Store, StoreError, TurnStart};

#[derive(Clone, Default)]
pub struct MemoryStore {
    memory: Arc<Mutex<Memory>>,
}

#[derive(Default)]
struct Memory {
    sessions: BTreeMap<SessionId, Stored>,
    disk: Disk,
    reopenings: usize,
}

struct Stored {
    record: SessionRecord,
    entries: Vec<LogEntry>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disk {
    #[default]
    Sound,
    /// Appends fail until there is space again.
    Full,
    /// The next append fails, those after it do not.
    Stumbling,
}

impl MemoryStore {
    pub fn set_disk(&self, disk: Disk) {
        self.lock().disk = disk;
    }

    /// Everything that was stored of a session.
    pub fn entries(&self, id: SessionId) -> Vec<LogEntry> {
        self.lock().sessions[&id].entries.clone()
    }

    /// How often a log was opened for more.
    pub fn reopenings(&self) -> usize {
        self.lock().reopenings
    }

    /// Puts a session there as an earlier process would have left it.
    pub fn put(&self, record: SessionRecord, entries: Vec<LogEntry>) {
        self.lock().sessions.insert(record.id, Stored { record, entries });
    }

    pub fn writer(&self, id: SessionId) -> Box<dyn LogWriter> {
        Box::new(Writer { store: self.clone(), id })
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().expect("no test panics while it holds the memory")
    }

    fn with<T>(&self, id: SessionId, read: impl FnOnce(&mut Stored) -> T) -> Result<T, StoreError> {
        self.lock().sessions.get_mut(&id).map(read).ok_or(StoreError::Unknown(id))
    }
}

struct Writer {
    store: MemoryStore,
    id: SessionId,
}

impl LogWriter for Writer {
    fn append(&mut self, entries: &[LogEntry]) -> Result<(), StoreError> {
        let mut memory = self.store.lock();
        match memory.disk {
            Disk::Sound => {}
            Disk::Full => return Err(StoreError::Full),
            Disk::Stumbling => {
                memory.disk = Disk::Sound;
                return Err(StoreError::Io("injected".into()));
            }
        }
        let stored = memory.sessions.get_mut(&self.id).ok_or(StoreError::Unknown(self.id))?;
        for entry in entries {
            let last = stored.entries.last().map_or(Seq::START, |entry| entry.seq);
            assert_eq!(entry.seq, last.next(), "entries are appended in order, without gaps");
            stored.entries.push(entry.clone());
        }
        Ok(())
    }

    fn sync(&mut self) -> BoxFuture<'static, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Store for MemoryStore {
    fn create(&self, record: SessionRecord) -> BoxFuture<'_, Result<Box<dyn LogWriter>, StoreError>> {
        let id = record.id;
        self.put(record, Vec::new());
        Box::pin(async move { Ok(self.writer(id)) })
    }

    fn reopen(&self, id: SessionId, tail: usize) -> BoxFuture<'_, Result<Reopened, StoreError>> {
        self.lock().reopenings += 1;
        let reopened = self.with(id, |stored| {
            let start = stored.entries.len().saturating_sub(tail);
            Reopened {
                record: stored.record.clone(),
                writer: self.writer(id),
                tail: stored.entries[start..].to_vec(),
                last: stored.entries.last().map_or(Seq::START, |entry| entry.seq),
                last_turn: stored.entries.iter().filter_map(|entry| entry.turn).max(),
            }
        });
        Box::pin(async move {
            // As on a disk, others get a word in meanwhile.
            tokio::task::yield_now().await;
            reopened
        })
    }

    fn read(
        &self,
        id: SessionId,
        after: Seq,
        until: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<LogEntry>, StoreError>> {
        let read = self.with(id, |stored| {
            let wanted = stored.entries.iter().filter(|entry| entry.seq > after && entry.seq <= until);
            wanted.take(limit).cloned().collect()
        });
        Box::pin(std::future::ready(read))
    }

    fn turn_starts(&self, id: SessionId, turns: usize) -> BoxFuture<'_, Result<Vec<TurnStart>, StoreError>> {
        let starts = self.with(id, |stored| {
            let prompts = stored.entries.iter().filter(|entry| matches!(entry.event, Event::Prompted { .. }));
            let mut starts: Vec<TurnStart> = prompts
                .map(|entry| TurnStart {
                    turn: entry.turn.unwrap_or(TurnId(0)),
                    after: Seq(entry.seq.0 - 1),
                    at: entry.at,
                })
                .collect();
            starts.split_off(starts.len().saturating_sub(turns))
        });
        Box::pin(std::future::ready(starts))
    }

    fn list(
        &self,
        principal: Option<Principal>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>> {
        let memory = self.lock();
        let records = memory.sessions.values().map(|stored| stored.record.clone());
        let mut records: Vec<SessionRecord> =
            records.filter(|record| principal.as_ref().is_none_or(|owner| *owner == record.principal)).collect();
        records.sort_by_key(|record| std::cmp::Reverse(record.updated));
        records.truncate(limit);
        Box::pin(std::future::ready(Ok(records)))
    }

    fn record(&self, id: SessionId) -> BoxFuture<'_, Result<SessionRecord, StoreError>> {
        Box::pin(std::future::ready(self.with(id, |stored| stored.record.clone())))
    }

    fn update(&self, record: SessionRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(self.with(record.id, |stored| stored.record = record.clone())))
    }

    fn delete(&self, id: SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        let gone = self.lock().sessions.remove(&id).map(drop).ok_or(StoreError::Unknown(id));
        Box::pin(std::future::ready(gone))
    }
}
