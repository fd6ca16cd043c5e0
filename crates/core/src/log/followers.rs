//! Everyone who follows a log live. A slow one loses its place; it never slows the others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Batch, Pace};

pub(super) struct Followers {
    all: Vec<Follower>,
    /// Batches that one may be behind.
    queue: usize,
    /// How long one may hold the agent.
    stall: Duration,
}

struct Follower {
    sender: mpsc::Sender<Batch>,
    pace: Pace,
    state: State,
}

enum State {
    Flowing,
    /// Its queue was full; these wait, and the agent with them.
    Holding {
        since: Instant,
        batches: VecDeque<Batch>,
    },
}

impl Followers {
    pub(super) fn new(queue: usize, stall: Duration) -> Self {
        Self { all: Vec::new(), queue, stall }
    }

    pub(super) fn add(&mut self, pace: Pace) -> mpsc::Receiver<Batch> {
        let (sender, receiver) = mpsc::channel(self.queue.max(1));
        self.all.push(Follower { sender, pace, state: State::Flowing });
        receiver
    }

    /// How many are there, without those that have gone.
    pub(super) fn count(&mut self) -> usize {
        self.all.retain(|follower| !follower.sender.is_closed());
        self.all.len()
    }

    pub(super) fn hand_out(&mut self, batch: &Batch) {
        self.all.retain_mut(|follower| follower.take(batch));
    }

    pub(super) fn dismiss(&mut self) {
        self.all.clear();
    }

    pub(super) fn is_held(&self) -> bool {
        self.all.iter().any(|follower| matches!(follower.state, State::Holding { .. }))
    }

    /// Resolves when nobody holds the agent any more. May be dropped and called again: time already spent counts.
    pub(super) async fn release(&mut self) {
        while let Some(at) = self.all.iter().position(|follower| matches!(follower.state, State::Holding { .. })) {
            if !self.all[at].catch_up(self.stall).await {
                self.all.swap_remove(at);
            }
        }
    }
}

impl Follower {
    /// Whether it keeps its place.
    fn take(&mut self, batch: &Batch) -> bool {
        if let State::Holding { batches, .. } = &mut self.state {
            batches.push_back(Arc::clone(batch));
            // The agent is held, but clients are not: what they bring may wait in the same measure.
            return batches.len() <= self.sender.max_capacity();
        }
        match self.sender.try_send(Arc::clone(batch)) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(batch)) if self.pace == Pace::HoldAgent => {
                self.state = State::Holding { since: Instant::now(), batches: VecDeque::from([batch]) };
                true
            }
            Err(_) => false,
        }
    }

    async fn catch_up(&mut self, stall: Duration) -> bool {
        let State::Holding { since, batches } = &mut self.state else { return true };
        while let Some(batch) = batches.front() {
            let Ok(Ok(permit)) = tokio::time::timeout_at(*since + stall, self.sender.reserve()).await else {
                return false;
            };
            permit.send(Arc::clone(batch));
            batches.pop_front();
            // It moves: the clock starts again.
            *since = Instant::now();
        }
        self.state = State::Flowing;
        true
    }
}
