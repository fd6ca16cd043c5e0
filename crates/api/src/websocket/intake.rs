//! What a message may hold whose end has not come, and for how long. A whole message that comes in one read costs
//! nothing here.

use std::task::{Context, Poll};

use tokio::time::Instant;

use super::socket::CloseCode;
use crate::guard::memory_budget::{Charge, Full};

pub struct Intake {
    charge: Charge,
    state: State,
}

enum State {
    Nothing,
    /// Some of a message has come.
    Coming(Clock),
    /// What has come is not charged yet, and nothing more is read before it is.
    NoRoom {
        clock: Clock,
        held: usize,
        since: Instant,
    },
}

#[derive(Clone, Copy)]
struct Clock {
    start: Instant,
    /// When the message last got longer. Control frames in between do not count.
    latest: Instant,
    /// The most bytes that it has had.
    longest: usize,
}

/// Whether a deadline has to be watched that was not there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    AsBefore,
    NewDeadline,
}

impl Intake {
    pub fn new(charge: Charge) -> Self {
        Self { charge, state: State::Nothing }
    }

    /// Charges what is held of a message that has not ended. Pending as long as there is no room for it.
    pub fn poll_hold(&mut self, held: usize, cx: &mut Context<'_>) -> Poll<Looked> {
        if held == 0 {
            if !matches!(self.state, State::Nothing) {
                self.release();
            }
            return Poll::Ready(Looked::AsBefore);
        }
        let now = Instant::now();
        let mut clock = match self.state {
            State::Nothing => Clock { start: now, latest: now, longest: 0 },
            State::Coming(clock) | State::NoRoom { clock, .. } => clock,
        };
        if held > clock.longest {
            clock = Clock { latest: now, longest: held, ..clock };
        }
        let had_room = matches!(self.state, State::Coming(_));
        if self.charge.poll_hold(held, cx).is_ready() {
            self.state = State::Coming(clock);
            return Poll::Ready(if had_room { Looked::AsBefore } else { Looked::NewDeadline });
        }
        if let State::NoRoom { .. } = self.state {
            return Poll::Pending;
        }
        self.state = State::NoRoom { clock, held, since: now };
        Poll::Ready(Looked::NewDeadline)
    }

    /// By when the rest must have come, or room for what is there.
    pub fn due(&self) -> Option<Instant> {
        let limits = self.charge.limits();
        match self.state {
            State::Nothing => None,
            State::Coming(Clock { start, latest, longest }) => Some(limits.deadline(start, latest, longest)),
            State::NoRoom { since, .. } => Some(since + limits.wait),
        }
    }

    /// Why the message is given up when it is due.
    pub fn overdue(&self) -> (CloseCode, &'static str) {
        let State::NoRoom { held, .. } = self.state else {
            return (CloseCode::POLICY, "the message came too slowly; send it in one go");
        };
        let reason = match self.charge.obstacle(held) {
            Full::Share => {
                "unfinished messages of this key take up its share of the memory; finish them, then try again"
            }
            Full::Budget => "too many large messages are being read at once; try again in a second",
        };
        (CloseCode::TRY_AGAIN_LATER, reason)
    }

    pub fn restart_clock(&mut self) {
        let now = Instant::now();
        if let State::Coming(clock) = &mut self.state {
            *clock = Clock { start: now, latest: now, ..*clock };
        }
    }

    pub fn release(&mut self) {
        self.charge.release();
        self.state = State::Nothing;
    }
}
