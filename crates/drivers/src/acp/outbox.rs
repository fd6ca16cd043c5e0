//! What we send to the agent: at once while it reads, else in order behind what waits already.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gembridge_process::{Begun, WriteError, Writer};
use tokio::sync::mpsc;

use super::routing_table::MOST_ASKS;

/// Lines of ours that may wait for the agent to read; one more is refused.
const LINES: usize = 256;
/// Room beside them for answers: an agent that asks much at once, and reads, gets every one of them.
const ANSWERS: usize = 4 * MOST_ASKS;

/// Takes lines from everybody.
pub(super) struct Outbox {
    /// Here while nothing waits: then whoever has a line writes it. Else it is with the [`Backlog`].
    stdin: Mutex<Option<Writer>>,
    /// Only filled while the lock is held and the writer is away.
    waiting: mpsc::Sender<Bytes>,
    /// To the backlog: the writer that could not write all of a line, or why it cannot write at all.
    stuck: mpsc::Sender<Result<Writer, WriteError>>,
}

/// Writes what did not go out at once. One task owns it.
pub(super) struct Backlog {
    waiting: mpsc::Receiver<Bytes>,
    stuck: mpsc::Receiver<Result<Writer, WriteError>>,
}

/// There is no room: the agent does not read, or is gone.
pub(super) struct Full;

impl Outbox {
    pub(super) fn new(stdin: Writer) -> (Self, Backlog) {
        let (waiting, lines) = mpsc::channel(LINES + ANSWERS);
        let (stuck, writers) = mpsc::channel(1);
        let outbox = Self { stdin: Mutex::new(Some(stdin)), waiting, stuck };
        (outbox, Backlog { waiting: lines, stuck: writers })
    }

    pub(super) fn send(&self, line: Bytes) -> Result<(), Full> {
        if self.waiting.capacity() <= ANSWERS { Err(Full) } else { self.answer(line) }
    }

    /// The same for the answer to a request of the agent.
    pub(super) fn answer(&self, line: Bytes) -> Result<(), Full> {
        let place = self.waiting.try_reserve().map_err(|_| Full)?;
        self.put(line, place);
        Ok(())
    }

    /// The same for whoever can wait for room.
    pub(super) async fn answer_in_time(&self, line: Bytes) -> Result<(), Full> {
        let place = self.waiting.reserve().await.map_err(|_| Full)?;
        self.put(line, place);
        Ok(())
    }

    fn put(&self, line: Bytes, place: mpsc::Permit<'_, Bytes>) {
        let mut stdin = self.stdin();
        let Some(mut writer) = stdin.take() else { return place.send(line) };
        let stuck = match writer.begin_line(&line) {
            Ok(Begun::Whole) => {
                *stdin = Some(writer);
                return;
            }
            Ok(Begun::InPart) => Ok(writer),
            Err(error) => Err(error),
        };
        // There is one writer, so there is room; and the task goes only when the process does.
        drop(self.stuck.try_send(stuck));
    }

    /// Never held across an await; a panic while it was held leaves an input that nobody writes to.
    fn stdin(&self) -> MutexGuard<'_, Option<Writer>> {
        self.stdin.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backlog {
    /// Writes until the agent's input breaks: everything that waits goes out in one write, each under the same deadline.
    pub(super) async fn write(mut self, outbox: &Outbox) -> WriteError {
        while let Some(stuck) = self.stuck.recv().await {
            let written = match stuck {
                Ok(writer) => self.clear(writer, outbox).await,
                Err(error) => Err(error),
            };
            if let Err(error) = written {
                return error;
            }
        }
        WriteError::Gone
    }

    async fn clear(&mut self, mut writer: Writer, outbox: &Outbox) -> Result<(), WriteError> {
        let mut batch = Vec::new();
        loop {
            writer.write_lines(&batch).await?;
            batch.clear();
            let mut stdin = outbox.stdin();
            while batch.len() < LINES
                && let Ok(line) = self.waiting.try_recv()
            {
                batch.push(line);
            }
            if batch.is_empty() {
                *stdin = Some(writer);
                return Ok(());
            }
        }
    }
}
