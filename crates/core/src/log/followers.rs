//! Everyone who follows a log live. A slow one loses its place; it never slows the others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Backpressure, Batch, LogEntry};

pub(super) struct Followers {
    all: Vec<Follower>,
    /// Batches that one may be behind.
    queue: usize,
    /// Bytes that one may be behind.
    bytes: usize,
    /// How long one may hold the agent.
    stall: Duration,
}

struct Follower {
    sender: mpsc::Sender<Batch>,
    backpressure: Backpressure,
    state: State,
    /// What the batches in its queue weigh, oldest first.
    queued: VecDeque<usize>,
    bytes: usize,
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
    pub(super) fn new(queue: usize, bytes: usize, stall: Duration) -> Self {
        Self { all: Vec::new(), queue, bytes, stall }
    }

    pub(super) fn add(&mut self, backpressure: Backpressure) -> mpsc::Receiver<Batch> {
        let (sender, receiver) = mpsc::channel(self.queue.max(1));
        let (queued, bytes) = (VecDeque::new(), self.bytes);
        self.all.push(Follower { sender, backpressure, state: State::Flowing, queued, bytes });
        receiver
    }

    /// How many are there, without those that have gone.
    pub(super) fn count(&mut self) -> usize {
        self.all.retain(|follower| !follower.sender.is_closed());
        self.all.len()
    }

    pub(super) fn hand_out(&mut self, batch: &Batch, weight: usize) {
        self.all.retain_mut(|follower| follower.take(batch, weight));
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
    fn take(&mut self, batch: &Batch, weight: usize) -> bool {
        if let State::Holding { batches, .. } = &mut self.state {
            batches.push_back(Arc::clone(batch));
            // The agent is held, but clients are not: what they bring may wait in the same measure.
            return batches.len() <= self.sender.max_capacity();
        }
        let fits = self.sender.capacity() >= self.slots_for(weight);
        match self.backpressure {
            _ if fits => {
                self.queued.push_back(weight);
                self.sender.try_send(Arc::clone(batch)).is_ok()
            }
            Backpressure::HoldAgent => {
                self.state = State::Holding { since: Instant::now(), batches: VecDeque::from([Arc::clone(batch)]) };
                true
            }
            Backpressure::Own => false,
        }
    }

    /// How much of its queue must be free before a batch of this weight fits: one slot, or more until what it is
    /// behind is light enough. A batch always fits into an empty queue.
    fn slots_for(&mut self, weight: usize) -> usize {
        let waiting = self.sender.max_capacity() - self.sender.capacity();
        while self.queued.len() > waiting {
            self.queued.pop_front();
        }
        let mut behind = weight;
        let light = self.queued.iter().rev().take_while(|queued| {
            behind = behind.saturating_add(**queued);
            behind <= self.bytes
        });
        (self.sender.max_capacity() - light.count()).max(1)
    }

    async fn catch_up(&mut self, stall: Duration) -> bool {
        loop {
            let State::Holding { since, batches } = &self.state else { return true };
            let Some(batch) = batches.front().map(Arc::clone) else {
                self.state = State::Flowing;
                return true;
            };
            let (until, weight) = (*since + stall, weight(&batch));
            let slots = self.slots_for(weight);
            let Ok(Ok(mut permits)) = tokio::time::timeout_at(until, self.sender.reserve_many(slots)).await else {
                return false;
            };
            // The other slots stay free.
            let Some(permit) = permits.next() else { return false };
            permit.send(batch);
            drop(permits);
            self.queued.push_back(weight);
            if let State::Holding { since, batches } = &mut self.state {
                batches.pop_front();
                // It moves: the clock starts again.
                *since = Instant::now();
            }
        }
    }
}

fn weight(batch: &Batch) -> usize {
    batch.iter().map(LogEntry::weight).sum()
}
