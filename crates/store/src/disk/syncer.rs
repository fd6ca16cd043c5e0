//! One thread that makes the journal durable. Whoever asks while it works is served by its next round, together.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use gembridge_core::store::StoreError;
use tokio::sync::oneshot;

use super::journal::Journal;

pub(super) struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

struct Queue {
    /// One for each caller, of which a session has few.
    waiting: Vec<oneshot::Sender<Result<(), StoreError>>>,
    is_open: bool,
}

impl Syncer {
    pub fn start(journal: Arc<Journal>) -> io::Result<Self> {
        let queue = Mutex::new(Queue { waiting: Vec::new(), is_open: true });
        let shared = Arc::new(Shared { queue, wake: Condvar::new() });
        let thread = thread::Builder::new().name("store-sync".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || {
                while let Some(waiting) = shared.next() {
                    let synced = journal.sync();
                    if let Err(error) = &synced {
                        tracing::warn!(%error, "the journal of the sessions could not be synced");
                    }
                    for reply in waiting {
                        // Whoever stopped waiting does not want to know.
                        drop(reply.send(synced.clone()));
                    }
                }
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The answer comes when everything that was appended before survives a power cut.
    pub fn request(&self) -> oneshot::Receiver<Result<(), StoreError>> {
        let (reply, answer) = oneshot::channel();
        self.shared.lock().waiting.push(reply);
        self.shared.wake.notify_one();
        answer
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.shared.lock().is_open = false;
        self.shared.wake.notify_one();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that syncs the journal panicked");
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everybody who waits; `None` when nobody will any more.
    fn next(&self) -> Option<Vec<oneshot::Sender<Result<(), StoreError>>>> {
        let queue = self.lock();
        let is_idle = |queue: &mut Queue| queue.is_open && queue.waiting.is_empty();
        let mut queue = self.wake.wait_while(queue, is_idle).unwrap_or_else(PoisonError::into_inner);
        let waiting = std::mem::take(&mut queue.waiting);
        (!waiting.is_empty()).then_some(waiting)
    }
}
