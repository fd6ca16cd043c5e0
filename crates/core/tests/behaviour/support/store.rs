//! The store in memory, with a disk that can be full.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use gembridge_core::BoxFuture;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{Principal, Seq, SessionId};
use gembridge_core::store::{self, LogWriter, Logs, Records, Reopened, SessionRecord, StoreError, TurnStart};

#[derive(Clone, Default)]
pub struct FaultyStore {
    memory: store::MemoryStore,
    faults: Arc<Mutex<Faults>>,
}

#[derive(Default)]
struct Faults {
    disk: Disk,
    reopenings: usize,
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

impl FaultyStore {
    pub fn set_disk(&self, disk: Disk) {
        self.lock().disk = disk;
    }

    /// Everything that was stored of a session.
    pub fn entries(&self, id: SessionId) -> Vec<LogEntry> {
        ready(self.memory.read(id, Seq::START, Seq(u64::MAX), usize::MAX)).expect("the session is stored")
    }

    /// How often a log was opened for more.
    pub fn reopenings(&self) -> usize {
        self.lock().reopenings
    }

    /// Puts a session there as an earlier process would have left it.
    pub fn put(&self, record: SessionRecord, entries: &[LogEntry]) {
        self.create_now(record).append(entries).expect("entries without gaps");
    }

    /// Stores a session and gives the writer of its log.
    pub fn create_now(&self, record: SessionRecord) -> Box<dyn LogWriter> {
        ready(self.create(record)).expect("a session of a new id")
    }

    /// The same session in the store of another process, and the writer of its log.
    pub fn in_another_process(&self, id: SessionId) -> (Self, Box<dyn LogWriter>) {
        let other = Self::default();
        let mut writer = other.create_now(ready(self.memory.record(id)).expect("the session is stored"));
        writer.append(&self.entries(id)).expect("entries without gaps");
        (other, writer)
    }

    fn writer(&self, memory: Box<dyn LogWriter>) -> Box<dyn LogWriter> {
        Box::new(Writer { memory, faults: Arc::clone(&self.faults) })
    }

    fn lock(&self) -> MutexGuard<'_, Faults> {
        lock(&self.faults)
    }
}

fn lock(faults: &Mutex<Faults>) -> MutexGuard<'_, Faults> {
    faults.lock().expect("no test panics while it holds the faults")
}

/// What a future of the store in memory gives: it never waits.
fn ready<T>(future: BoxFuture<'_, T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a store in memory does not wait"),
    }
}

struct Writer {
    memory: Box<dyn LogWriter>,
    faults: Arc<Mutex<Faults>>,
}

impl LogWriter for Writer {
    fn append(&mut self, entries: &[LogEntry]) -> Result<(), StoreError> {
        let mut faults = lock(&self.faults);
        match faults.disk {
            Disk::Sound => self.memory.append(entries),
            Disk::Full => Err(StoreError::Full),
            Disk::Stumbling => {
                faults.disk = Disk::Sound;
                Err(StoreError::Io("injected".into()))
            }
        }
    }

    fn sync(&mut self) -> BoxFuture<'static, Result<(), StoreError>> {
        self.memory.sync()
    }
}

impl Records for FaultyStore {
    fn list(&self, owner: Option<Principal>, limit: usize) -> BoxFuture<'_, Result<Vec<SessionRecord>, StoreError>> {
        self.memory.list(owner, limit)
    }

    fn record(&self, id: SessionId) -> BoxFuture<'_, Result<SessionRecord, StoreError>> {
        self.memory.record(id)
    }

    fn update(&self, record: SessionRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        self.memory.update(record)
    }
}

impl Logs for FaultyStore {
    fn create(&self, record: SessionRecord) -> BoxFuture<'_, Result<Box<dyn LogWriter>, StoreError>> {
        Box::pin(async { Ok(self.writer(self.memory.create(record).await?)) })
    }

    fn reopen(&self, id: SessionId, tail: usize) -> BoxFuture<'_, Result<Reopened, StoreError>> {
        self.lock().reopenings += 1;
        Box::pin(async move {
            let Reopened { record, last, last_turn, tail, writer } = self.memory.reopen(id, tail).await?;
            // As on a disk, others get a word in meanwhile.
            tokio::task::yield_now().await;
            Ok(Reopened { record, last, last_turn, tail, writer: self.writer(writer) })
        })
    }

    fn read(
        &self,
        id: SessionId,
        after: Seq,
        until: Seq,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<LogEntry>, StoreError>> {
        self.memory.read(id, after, until, limit)
    }

    fn turn_starts(&self, id: SessionId, turns: usize) -> BoxFuture<'_, Result<Vec<TurnStart>, StoreError>> {
        self.memory.turn_starts(id, turns)
    }

    fn delete(&self, id: SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        self.memory.delete(id)
    }
}
