//! What goes out: messages are serialised straight into one shared buffer that one task writes in large pieces.
//!
//! The buffer has a bound in bytes; who finds it full waits in line, so a client that reads slowly slows the
//! turns down and no session starves another. At most one buffer is filled while another is written.

use std::cell::{Cell, RefCell};
use std::io;

use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, Semaphore};

/// Bytes that may wait; 256 KiB is four times what a pipe holds.
const ROOM: u32 = 256 * 1024;
/// What a message costs beside its text.
const ENVELOPE: usize = 200;
/// A buffer that grew beyond this for one large message is given back.
const KEPT_CAPACITY: usize = 4 * ROOM as usize;

pub(crate) struct Outbox {
    waiting: RefCell<Waiting>,
    room: Semaphore,
    filled: Notify,
    closed: Cell<bool>,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// The room taken by `bytes`, given back when they are handed to the writer.
    charged: u32,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Self {
            waiting: RefCell::default(),
            room: Semaphore::new(ROOM as usize),
            filled: Notify::new(),
            closed: Cell::new(false),
        }
    }

    /// Queues a message that is mostly text of the given length, without a copy in between.
    pub(crate) async fn send_text(&self, message: &impl Serialize, text_len: usize) {
        let charge = self.claim(text_len).await;
        self.append(message, charge);
    }

    /// Queues a message of unknown size.
    pub(crate) async fn send(&self, message: &impl Serialize) {
        match serde_json::to_string(message) {
            Ok(text) => {
                let charge = self.claim(text.len()).await;
                self.append_line(&text, charge);
            }
            Err(error) => crate::complain(&format!("a message was not sent: {error}")),
        }
    }

    /// Queues a small message that must not wait, such as the withdrawal of a request.
    pub(crate) fn send_now(&self, message: &impl Serialize) {
        self.append(message, 0);
    }

    /// Lets `write_to` end once everything queued so far is written; what comes later is dropped.
    pub(crate) fn close(&self) {
        self.closed.set(true);
        self.filled.notify_one();
    }

    /// Writes what is queued until the outbox is closed or the client is gone.
    pub(crate) async fn write_to(&self, mut out: impl AsyncWrite + Unpin) -> io::Result<()> {
        let mut batch = Vec::new();
        loop {
            let charged = {
                let mut waiting = self.waiting.borrow_mut();
                std::mem::swap(&mut waiting.bytes, &mut batch);
                std::mem::take(&mut waiting.charged)
            };
            if batch.is_empty() {
                if self.closed.get() {
                    return Ok(());
                }
                self.filled.notified().await;
                continue;
            }
            self.room.add_permits(charged as usize);
            out.write_all(&batch).await?;
            out.flush().await?;
            batch.clear();
            batch.shrink_to(KEPT_CAPACITY);
        }
    }

    /// Waits for room. A message larger than all of it takes all of it.
    async fn claim(&self, text_len: usize) -> u32 {
        let charge = u32::try_from(text_len + ENVELOPE).map_or(ROOM, |cost| cost.min(ROOM));
        match self.room.acquire_many(charge).await {
            Ok(permit) => permit.forget(),
            Err(_) => unreachable!("the semaphore is never closed"),
        }
        charge
    }

    fn append(&self, message: &impl Serialize, charge: u32) {
        if self.closed.get() {
            return;
        }
        let mut waiting = self.waiting.borrow_mut();
        let start = waiting.bytes.len();
        waiting.charged += charge;
        if let Err(error) = serde_json::to_writer(&mut waiting.bytes, message) {
            waiting.bytes.truncate(start);
            crate::complain(&format!("a message was not sent: {error}"));
            return;
        }
        waiting.bytes.push(b'\n');
        drop(waiting);
        self.filled.notify_one();
    }

    fn append_line(&self, line: &str, charge: u32) {
        if self.closed.get() {
            return;
        }
        let mut waiting = self.waiting.borrow_mut();
        waiting.charged += charge;
        waiting.bytes.extend_from_slice(line.as_bytes());
        waiting.bytes.push(b'\n');
        drop(waiting);
        self.filled.notify_one();
    }
}
