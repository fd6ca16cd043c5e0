//! Warm spares of anything that is slow to make: taken at once, replaced in the background, refused at once when
//! making them keeps failing.

mod keeper;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::supervise::RestartPolicy;
use keeper::{Command, Keeper};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes and disposes of what a [`Pool`] holds. Called by the pool's own task only.
///
/// Every item is made once and then either taken, or found dead and dropped, or retired. Dropping an item, or the
/// future that makes it, must release all that belongs to it: that is what happens when a pool is dropped.
pub trait Factory: Send + Sync + 'static {
    type Item: Send + 'static;
    type Error: fmt::Display + Send + Sync + 'static;

    fn make(&self) -> BoxFuture<'_, Result<Self::Item, Self::Error>>;

    /// Asked just before a spare is handed out.
    fn is_alive(&self, item: &Self::Item) -> bool;

    /// Resolves when a spare has died, so that it is replaced before anyone asks for it.
    fn closed(&self, item: &Self::Item) -> BoxFuture<'static, ()>;

    /// Ends a spare in an orderly way: at shutdown, or because whoever it was made for has left.
    fn retire(&self, item: Self::Item) -> BoxFuture<'_, ()>;
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoolConfig {
    /// Items kept ready.
    pub spares: usize,
    /// Items made at the same time.
    pub max_making: usize,
    /// Callers that may wait for an item at the same time.
    pub max_waiting: usize,
    /// How long a caller waits for an item.
    pub deadline: Duration,
    pub restart: RestartPolicy,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            spares: 1,
            max_making: 2,
            max_waiting: 64,
            deadline: Duration::from_mins(1),
            restart: RestartPolicy::default(),
        }
    }
}

/// Why there is no item.
#[derive(Debug, thiserror::Error)]
pub enum PoolError<E: fmt::Display> {
    #[error("{0}")]
    Failed(Failure<E>),
    /// Making items keeps failing; not tried again before `retry_after` is over.
    #[error("not tried again for {} s after repeated failures; the last one: {last}", retry_after.as_secs_f32().ceil())]
    CircuitOpen { retry_after: Duration, last: Failure<E> },
    #[error("{waiting} others are waiting already; try again later")]
    Full { waiting: usize },
    #[error("nothing was ready within {0:?}")]
    Deadline(Duration),
    #[error("shutting down")]
    ShutDown,
}

/// What went wrong with an item.
#[derive(Debug, thiserror::Error)]
pub enum Failure<E: fmt::Display> {
    #[error("{0}")]
    Make(Arc<E>),
    /// It was made, and ended by itself.
    #[error("it ended by itself: {0}")]
    Died(Arc<str>),
    #[error("making it panicked")]
    Panicked,
}

impl<E: fmt::Display> Clone for Failure<E> {
    fn clone(&self) -> Self {
        match self {
            Self::Make(error) => Self::Make(Arc::clone(error)),
            Self::Died(how) => Self::Died(Arc::clone(how)),
            Self::Panicked => Self::Panicked,
        }
    }
}

/// What a pool holds at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolStatus {
    pub spares: usize,
    pub making: usize,
    pub waiting: usize,
    /// Items that could not be made or ended by themselves, ever.
    pub failures: u64,
    /// Set while the circuit is open.
    pub retry_after: Option<Duration>,
}

/// The pool. Dropping it drops the spares; [`shut_down`](Self::shut_down) retires them.
pub struct Pool<F: Factory> {
    commands: mpsc::Sender<Command<F>>,
    status: watch::Receiver<PoolStatus>,
    config: PoolConfig,
    /// Owns the keeper's task: aborted when the pool goes.
    _keeper: JoinSet<()>,
}

impl<F: Factory> Pool<F> {
    /// Starts to make the spares at once.
    pub fn new(factory: F, config: PoolConfig) -> Self {
        let (commands, mailbox) = mpsc::channel(config.max_waiting.max(1));
        let (status, seen) = watch::channel(PoolStatus::default());
        let mut keeper = JoinSet::new();
        keeper.spawn(Keeper::new(factory, config, mailbox, status).run());
        Self { commands, status: seen, config, _keeper: keeper }
    }

    /// A spare at once, or the next item to be made. A replacement is started before this returns.
    pub async fn take(&self) -> Result<F::Item, PoolError<F::Error>> {
        let until = Instant::now() + self.config.deadline;
        let (reply, mut answer) = oneshot::channel();
        match timeout_at(until, self.commands.send(Command::Take { reply })).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(PoolError::ShutDown),
            Err(_) => return Err(PoolError::Deadline(self.config.deadline)),
        }
        let Ok(answered) = timeout_at(until, &mut answer).await else {
            // What was sent in the same moment must not be lost.
            answer.close();
            return answer.try_recv().unwrap_or(Err(PoolError::Deadline(self.config.deadline)));
        };
        answered.unwrap_or(Err(PoolError::ShutDown))
    }

    /// Tells that an item which was taken has crashed: it counts like a failure to make one.
    pub async fn report_crash(&self, how: impl Into<Arc<str>>) {
        if self.commands.send(Command::Crashed { how: how.into() }).await.is_err() {
            tracing::debug!("a crash was reported to a pool that has shut down");
        }
    }

    pub fn status(&self) -> PoolStatus {
        *self.status.borrow()
    }

    /// When the pool's status is what `wanted` asks for.
    pub async fn until(&self, wanted: impl FnMut(&PoolStatus) -> bool) -> Result<PoolStatus, PoolError<F::Error>> {
        let mut status = self.status.clone();
        status.wait_for(wanted).await.map(|status| *status).map_err(|_| PoolError::ShutDown)
    }

    /// Refuses further callers, retires all spares and waits for it.
    pub async fn shut_down(&self) {
        let (done, finished) = oneshot::channel();
        // A keeper that is gone has nothing left to retire.
        if self.commands.send(Command::ShutDown { done }).await.is_ok() && finished.await.is_err() {
            tracing::debug!("a pool was shut down twice");
        }
    }
}

impl<F: Factory> fmt::Debug for Pool<F> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pool").field("status", &self.status()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
