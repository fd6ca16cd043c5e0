//! The pool's one task: owns the spares, makes new ones, serves those who wait.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::{Factory, Failure, PoolConfig, PoolError, PoolStatus};
use crate::supervise::{Admission, Supervisor};

type Answer<F> = Result<<F as Factory>::Item, PoolError<<F as Factory>::Error>>;

pub(super) enum Command<F: Factory> {
    Take { reply: oneshot::Sender<Answer<F>> },
    Crashed { how: Arc<str> },
    ShutDown { done: oneshot::Sender<()> },
}

pub(super) struct Keeper<F: Factory> {
    factory: Arc<F>,
    config: PoolConfig,
    mailbox: mpsc::Receiver<Command<F>>,
    status: watch::Sender<PoolStatus>,
    supervisor: Supervisor,
    spares: VecDeque<Spare<F::Item>>,
    waiting: VecDeque<oneshot::Sender<Answer<F>>>,
    making: JoinSet<Result<F::Item, F::Error>>,
    /// Each resolves to the number of a spare that has died.
    vigils: JoinSet<u64>,
    retiring: JoinSet<()>,
    made: u64,
    failures: u64,
    last: Option<Failure<F::Error>>,
    retry_at: Option<Instant>,
}

struct Spare<I> {
    number: u64,
    item: I,
    vigil: AbortHandle,
}

impl<F: Factory> Keeper<F> {
    pub(super) fn new(
        factory: F,
        config: PoolConfig,
        mailbox: mpsc::Receiver<Command<F>>,
        status: watch::Sender<PoolStatus>,
    ) -> Self {
        // The seed only has to differ between pools; the hasher's keys are random.
        let seed = RandomState::new().hash_one(0);
        Self {
            factory: Arc::new(factory),
            config,
            mailbox,
            status,
            supervisor: Supervisor::new(config.restart, seed),
            spares: VecDeque::new(),
            waiting: VecDeque::new(),
            making: JoinSet::new(),
            vigils: JoinSet::new(),
            retiring: JoinSet::new(),
            made: 0,
            failures: 0,
            last: None,
            retry_at: None,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            self.fill();
            self.publish();
            tokio::select! {
                command = self.mailbox.recv() => match command {
                    Some(Command::Take { reply }) => self.take(reply),
                    Some(Command::Crashed { how }) => self.note(Failure::Died(how)),
                    Some(Command::ShutDown { done }) => return self.shut_down(done).await,
                    None => return,
                },
                Some(made) = self.making.join_next() => self.finish_making(made),
                Some(died) = self.vigils.join_next() => self.bury(&died),
                Some(retired) = self.retiring.join_next() => note_retired(&retired),
                () = sleep_until(self.retry_at.unwrap_or_else(Instant::now)), if self.retry_at.is_some() => {}
            }
        }
    }

    /// Starts to make what is missing, as far as the supervisor lets it.
    fn fill(&mut self) {
        self.waiting.retain(|waiting| !waiting.is_closed());
        self.retry_at = None;
        let wanted = self.config.spares + self.waiting.len();
        while self.spares.len() + self.making.len() < wanted && self.making.len() < self.config.max_making {
            let now = Instant::now();
            match self.supervisor.admit(now.into_std()) {
                Admission::Go => {
                    let factory = Arc::clone(&self.factory);
                    self.making.spawn(async move { factory.make().await });
                }
                Admission::Backoff { retry_after } | Admission::Open { retry_after } => {
                    self.retry_at = Some(now + retry_after);
                    break;
                }
            }
        }
    }

    fn take(&mut self, reply: oneshot::Sender<Answer<F>>) {
        while let Some(spare) = self.spares.pop_front() {
            spare.vigil.abort();
            if self.factory.is_alive(&spare.item) {
                if let Err(Ok(item)) = reply.send(Ok(spare.item)) {
                    self.keep(item);
                }
                return;
            }
            self.note(Failure::Died("while it was waiting".into()));
        }
        if let Some(refused) = self.circuit_open() {
            answer::<F>(reply, refused);
        } else if self.waiting.len() >= self.config.max_waiting {
            answer::<F>(reply, PoolError::Full { waiting: self.waiting.len() });
        } else {
            self.waiting.push_back(reply);
        }
    }

    fn finish_making(&mut self, made: Result<Result<F::Item, F::Error>, JoinError>) {
        match made {
            Ok(Ok(item)) => {
                self.supervisor.succeeded();
                self.hand_out(item);
            }
            Ok(Err(error)) => self.fail_making(Failure::Make(Arc::new(error))),
            Err(_) => self.fail_making(Failure::Panicked),
        }
    }

    /// To the first who still waits, else to the spares.
    fn hand_out(&mut self, item: F::Item) {
        let mut item = item;
        while let Some(waiting) = self.waiting.pop_front() {
            match waiting.send(Ok(item)) {
                Ok(()) => return,
                Err(Ok(unwanted)) => item = unwanted,
                Err(Err(_)) => unreachable!("an item was sent"),
            }
        }
        self.keep(item);
    }

    fn keep(&mut self, item: F::Item) {
        if self.spares.len() >= self.config.spares {
            // Made for someone who has left.
            return self.retire(item);
        }
        self.made += 1;
        let number = self.made;
        let closed = self.factory.closed(&item);
        let vigil = self.vigils.spawn(async move {
            closed.await;
            number
        });
        self.spares.push_back(Spare { number, item, vigil });
    }

    fn retire(&mut self, item: F::Item) {
        let factory = Arc::clone(&self.factory);
        self.retiring.spawn(async move { factory.retire(item).await });
    }

    /// The failure belongs to one of those who wait; the others wait on for the next try.
    fn fail_making(&mut self, failure: Failure<F::Error>) {
        self.waiting.retain(|waiting| !waiting.is_closed());
        if let Some(waiting) = self.waiting.pop_front() {
            answer::<F>(waiting, PoolError::Failed(failure.clone()));
        }
        self.note(failure);
    }

    fn bury(&mut self, died: &Result<u64, JoinError>) {
        // A vigil that was called off belongs to a spare that was taken.
        let Ok(number) = *died else { return };
        let before = self.spares.len();
        self.spares.retain(|spare| spare.number != number);
        if self.spares.len() < before {
            self.note(Failure::Died("while it was waiting".into()));
        }
    }

    fn note(&mut self, failure: Failure<F::Error>) {
        tracing::info!(%failure, "a pooled item failed");
        self.supervisor.failed(Instant::now().into_std());
        self.failures += 1;
        self.last = Some(failure);
        while let Some(refused) = self.circuit_open()
            && let Some(waiting) = self.waiting.pop_front()
        {
            answer::<F>(waiting, refused);
        }
    }

    fn circuit_open(&self) -> Option<PoolError<F::Error>> {
        let retry_after = self.supervisor.open_for(Instant::now().into_std()).filter(|wait| !wait.is_zero())?;
        let last = self.last.clone()?;
        Some(PoolError::CircuitOpen { retry_after, last })
    }

    fn publish(&self) {
        let status = PoolStatus {
            spares: self.spares.len(),
            making: self.making.len(),
            waiting: self.waiting.len(),
            failures: self.failures,
            retry_after: self.supervisor.open_for(Instant::now().into_std()),
        };
        self.status.send_if_modified(|seen| std::mem::replace(seen, status) != status);
    }

    async fn shut_down(mut self, done: oneshot::Sender<()>) {
        self.mailbox.close();
        self.vigils.abort_all();
        self.making.abort_all();
        for waiting in self.waiting.drain(..) {
            answer::<F>(waiting, PoolError::ShutDown);
        }
        for spare in std::mem::take(&mut self.spares) {
            self.retire(spare.item);
        }
        while let Some(made) = self.making.join_next().await {
            if let Ok(Ok(item)) = made {
                self.retire(item);
            }
        }
        while let Some(retired) = self.retiring.join_next().await {
            note_retired(&retired);
        }
        if done.send(()).is_err() {
            tracing::debug!("nobody waited for a pool to shut down");
        }
    }
}

fn note_retired(retired: &Result<(), JoinError>) {
    if let Err(error) = retired {
        tracing::error!(%error, "retiring a pooled item failed");
    }
}

/// Whoever asked may have left; there is nothing to save in a refusal.
fn answer<F: Factory>(reply: oneshot::Sender<Answer<F>>, refused: PoolError<F::Error>) {
    if reply.send(Err(refused)).is_err() {
        tracing::trace!("a caller left the pool's queue");
    }
}
