//! The session records in `SQLite`. One thread owns the connection and commits everything that waits as one group.

mod log;
mod records;
mod schema;

use std::path::Path;
use std::thread::{self, JoinHandle};

use gembridge_core::store::StoreError;
use rusqlite::{Connection, ErrorCode};
use tokio::sync::{mpsc, oneshot};

use super::files::failure;

pub(super) use log::{
    append, archived, bytes, bytes_of, chunk, count_bytes, find_end, lengths, set_archived, turn_starts,
};
pub(super) use records::{Oldest, create, delete, exists, list, newest, oldest, record, update};
pub(super) use schema::give_back;

/// How many requests may wait, and how many become one commit. Beyond it callers wait for a place.
const QUEUE: usize = 256;

/// Runs inside the group's transaction, and gives what is to be said after its commit.
type Work = Box<dyn FnOnce(Result<&Connection, &StoreError>) -> Acknowledge + Send>;
type Acknowledge = Box<dyn FnOnce(Option<&StoreError>)>;

pub(super) struct Database {
    queue: Option<mpsc::Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

impl Database {
    /// Opens the file, or makes it, and brings its tables up to date.
    pub fn connect(path: &Path) -> Result<Connection, StoreError> {
        schema::open(path)
    }

    pub fn start(connection: Connection) -> Result<Self, StoreError> {
        let (queue, mut waiting) = mpsc::channel::<Work>(QUEUE);
        let thread = thread::Builder::new()
            .name("store-database".to_owned())
            .spawn(move || {
                let mut group = Vec::with_capacity(QUEUE);
                while waiting.blocking_recv_many(&mut group, QUEUE) > 0 {
                    commit(&connection, group.drain(..));
                }
            })
            .map_err(|error| failure(&error))?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Resolves with what `work` gave once its transaction is committed. Others share it.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (job, answer) = job(work);
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        queue.send(job).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// The same for a thread.
    pub fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (job, answer) = job(work);
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        queue.blocking_send(job).map_err(|_| closed())?;
        answer.blocking_recv().map_err(|_| closed())?
    }
}

fn closed() -> StoreError {
    StoreError::Io("the store is closed".to_owned())
}

fn job<T: Send + 'static>(
    work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
) -> (Work, oneshot::Receiver<Result<T, StoreError>>) {
    let (reply, answer) = oneshot::channel();
    let job: Work = Box::new(move |connection| {
        let result = connection.map_err(Clone::clone).and_then(work);
        Box::new(move |failed| {
            // Whoever stopped waiting does not want to know. A failure of its own says more than the group's.
            drop(reply.send(match failed {
                Some(error) => result.and(Err(error.clone())),
                None => result,
            }));
        })
    });
    (job, answer)
}

/// All of `work`, or nothing of it, inside the transaction that it shares with others.
pub(super) fn atomically<T>(
    connection: &Connection,
    work: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let run = |sql: &str| connection.execute_batch(sql).map_err(|error| refusal(&error));
    run("SAVEPOINT work")?;
    let result = work();
    if result.is_ok() {
        run("RELEASE work")?;
    } else if !connection.is_autocommit() {
        run("ROLLBACK TO work; RELEASE work")?;
    }
    result
}

/// Runs `work` in a transaction of its own.
pub(super) fn in_transaction(
    connection: &Connection,
    work: impl FnOnce() -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let transaction = connection.unchecked_transaction().map_err(|error| refusal(&error))?;
    work()?;
    transaction.commit().map_err(|error| refusal(&error))
}

impl Drop for Database {
    fn drop(&mut self) {
        self.queue = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that writes session records panicked");
        }
    }
}

/// Runs the group in one transaction, and answers each when all of them are safe or none is.
fn commit(connection: &Connection, group: impl Iterator<Item = Work>) {
    let mut failed = connection.execute_batch("BEGIN IMMEDIATE").err().map(|error| refusal(&error));
    let mut acknowledgements = Vec::new();
    for work in group {
        acknowledgements.push(work(failed.as_ref().map_or(Ok(connection), Err)));
        if failed.is_none() && connection.is_autocommit() {
            // SQLite ends the whole transaction by itself when the disk fails.
            failed = Some(StoreError::Io("another change of the same commit failed".to_owned()));
        }
    }
    if failed.is_none() {
        failed = connection.execute_batch("COMMIT").err().map(|error| refusal(&error));
    }
    if !connection.is_autocommit()
        && let Err(error) = connection.execute_batch("ROLLBACK")
    {
        tracing::error!(%error, "a failed transaction could not be rolled back");
    }
    for acknowledge in acknowledgements {
        acknowledge(failed.as_ref());
    }
}

/// What a failure of `SQLite` means to whoever asked.
pub(super) fn refusal(error: &rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged(error.to_string()),
        _ => StoreError::Io(error.to_string()),
    }
}
