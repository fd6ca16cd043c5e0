//! The clocks of a turn. They stand still while the turn waits for a person or for a client's tool.

use std::time::Duration;

use tokio::time::Instant;

pub(super) struct Clock {
    idle: Duration,
    total: Duration,
    ends: Instant,
    last_sign: Instant,
    waiting: Waiting,
}

enum Waiting {
    No,
    /// For how many things, and since when.
    For {
        things: usize,
        since: Instant,
    },
}

/// Which clock ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RanOut {
    Idle,
    Total,
}

impl Clock {
    pub(super) fn start(idle: Duration, total: Duration, now: Instant) -> Self {
        Self { idle, total, ends: now + total, last_sign: now, waiting: Waiting::No }
    }

    /// The agent showed that it lives.
    pub(super) fn sign_of_life(&mut self, now: Instant) {
        self.last_sign = now;
    }

    pub(super) fn wait_begins(&mut self, now: Instant) {
        self.waiting = match self.waiting {
            Waiting::No => Waiting::For { things: 1, since: now },
            Waiting::For { things, since } => Waiting::For { things: things + 1, since },
        };
    }

    pub(super) fn wait_ends(&mut self, now: Instant) {
        self.waiting = match self.waiting {
            Waiting::For { things: 0 | 1, since } => {
                self.ends += now - since;
                self.last_sign = now;
                Waiting::No
            }
            Waiting::For { things, since } => Waiting::For { things: things - 1, since },
            Waiting::No => Waiting::No,
        };
    }

    /// A new request of the client: it may take as long as one that begins a turn.
    pub(super) fn restart(&mut self, now: Instant) {
        self.ends = now + self.total;
        self.last_sign = now;
        if let Waiting::For { since, .. } = &mut self.waiting {
            *since = now;
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.waiting {
            Waiting::No => Some(self.ends.min(self.last_sign + self.idle)),
            Waiting::For { .. } => None,
        }
    }

    pub(super) fn ran_out(&self, now: Instant) -> Option<RanOut> {
        self.deadline().filter(|deadline| *deadline <= now)?;
        Some(if self.ends <= now { RanOut::Total } else { RanOut::Idle })
    }

    pub(super) fn limit(&self, ran_out: RanOut) -> Duration {
        match ran_out {
            RanOut::Idle => self.idle,
            RanOut::Total => self.total,
        }
    }
}
