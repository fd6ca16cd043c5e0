//! One thread that makes logs durable. What is asked for while it works is done together in its next round.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use gembridge_core::store::StoreError;
use tokio::sync::oneshot;

use super::files::Files;
use super::live::Live;
use super::segment::LogPosition;

pub(super) struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

struct Queue {
    /// At most one for each open log.
    jobs: Vec<Job>,
    open: bool,
}

struct Job {
    live: Arc<Live>,
    upto: LogPosition,
    waiting: Vec<oneshot::Sender<Result<(), StoreError>>>,
}

impl Syncer {
    pub fn start(files: Arc<dyn Files>) -> io::Result<Self> {
        let queue = Mutex::new(Queue { jobs: Vec::new(), open: true });
        let shared = Arc::new(Shared { queue, wake: Condvar::new() });
        let thread = thread::Builder::new().name("store-sync".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || {
                while let Some(jobs) = shared.next() {
                    for job in jobs {
                        job.run(&*files);
                    }
                }
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The answer comes when everything that `live` holds now is durable.
    pub fn request(&self, live: &Arc<Live>) -> oneshot::Receiver<Result<(), StoreError>> {
        let (reply, answer) = oneshot::channel();
        self.enqueue(live, Some(reply));
        answer
    }

    /// Asks for the same when nobody waits for it.
    pub fn request_in_background(&self, live: &Arc<Live>) {
        self.enqueue(live, None);
    }

    fn enqueue(&self, live: &Arc<Live>, reply: Option<oneshot::Sender<Result<(), StoreError>>>) {
        let upto = live.end();
        let mut queue = self.shared.lock();
        match queue.jobs.iter_mut().find(|job| Arc::ptr_eq(&job.live, live)) {
            Some(job) => {
                job.upto = job.upto.max(upto);
                job.waiting.extend(reply);
            }
            None => queue.jobs.push(Job { live: Arc::clone(live), upto, waiting: reply.into_iter().collect() }),
        }
        self.shared.wake.notify_one();
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.shared.lock().open = false;
        self.shared.wake.notify_one();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that syncs session logs panicked");
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that was asked for; `None` when no more will be.
    fn next(&self) -> Option<Vec<Job>> {
        let queue = self.lock();
        let mut queue = self
            .wake
            .wait_while(queue, |queue| queue.open && queue.jobs.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        let jobs = std::mem::take(&mut queue.jobs);
        (!jobs.is_empty()).then_some(jobs)
    }
}

impl Job {
    fn run(self, files: &dyn Files) {
        let result = self.live.make_durable(self.upto, files);
        if let Err(error) = &result {
            tracing::warn!(session = %self.live.id, %error, "a session log could not be synced");
        }
        for reply in self.waiting {
            // Whoever stopped waiting does not want to know.
            drop(reply.send(result.clone()));
        }
    }
}
