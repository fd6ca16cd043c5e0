//! Permits of the agent: a turn takes one when its prompt is at the head of the session, and gives it back while it
//! waits for its client.

use tokio::sync::oneshot;

use super::{Actor, Stage, report};
use crate::admission::{Permit, Waiter};
use crate::error::Error;
use crate::log::Draft;
use crate::model::{Event, Failure, Outcome};
use crate::session::handle::{Resumed, SubmitResults};
use crate::session::queue::{Pass, Waiting};
use crate::turn::Turn;

/// What a turn that runs has of its agent.
pub(super) enum Slot {
    Held(Permit),
    /// The agent waits for the client's results: others may run meanwhile.
    Released,
    /// Results are there and wait for a permit.
    Requested {
        waiter: Waiter,
        results: Vec<DeferredResults>,
    },
}

/// Results of calls, and whoever waits to hear that the agent has them.
pub(super) struct DeferredResults {
    pub given: SubmitResults,
    pub reply: oneshot::Sender<Result<Resumed, Error>>,
}

impl Stage {
    /// Resolves with the permit that the stage waits for; never where it waits for none.
    pub(super) async fn permit(&mut self) -> Permit {
        match self {
            Self::Admitting(Waiting { pass: Pass::Awaited(waiter), .. })
            | Self::Running { slot: Slot::Requested { waiter, .. }, .. } => waiter.await,
            _ => std::future::pending().await,
        }
    }

    /// Takes the results that wait for a permit.
    pub(super) fn take_deferred(&mut self) -> Vec<DeferredResults> {
        match self {
            Self::Running { slot: Slot::Requested { results, .. }, .. } => std::mem::take(results),
            _ => Vec::new(),
        }
    }
}

impl Actor {
    /// A permit for a prompt that just came, or a position among those that wait.
    pub(super) fn pass(&self, is_busy: bool) -> Result<Pass, Error> {
        let principal = &self.record.principal;
        if !is_busy && let Some(permit) = self.admission.try_admit(principal) {
            return Ok(Pass::Granted(permit));
        }
        Ok(Pass::Awaited(self.admission.wait(principal)?))
    }

    /// The prompt is at the head of the session: it begins, or waits for a permit.
    pub(super) fn admit(&mut self, mut waiting: Waiting) {
        if let Pass::Awaited(waiter) = &mut waiting.pass {
            waiter.enter();
            let Some(permit) = waiter.try_take() else {
                self.stage = Stage::Admitting(waiting);
                return;
            };
            waiting.pass = Pass::Granted(permit);
            self.log_admitted(&waiting);
        }
        self.begin(waiting);
    }

    pub(super) fn on_admitted(&mut self, permit: Permit) {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Admitting(mut waiting) => {
                waiting.pass = Pass::Granted(permit);
                self.log_admitted(&waiting);
                self.begin(waiting);
                self.start_next();
            }
            Stage::Running { turn, slot } => {
                self.stage = Stage::Running { turn, slot: Slot::Held(permit) };
                if let Slot::Requested { results, .. } = slot {
                    self.submit_all(results);
                }
            }
            other => self.stage = other,
        }
    }

    fn log_admitted(&mut self, waiting: &Waiting) {
        let admitted = Draft { turn: Some(waiting.turn), event: Event::Admitted, frame: None };
        // A log that cannot be written ends the turn in the next step.
        report(self.journal.append(vec![admitted]).map(|_| ()), "the start of a turn");
    }

    /// Gives the permit back while the turn waits for its client, and takes one when it goes on without results.
    pub(super) fn settle_slot(&mut self) {
        let Stage::Running { turn, slot } = &mut self.stage else { return };
        match slot {
            Slot::Held(_) if turn.is_parked() => *slot = Slot::Released,
            Slot::Released | Slot::Requested { .. } if turn.parked_calls().next().is_none() => {
                let permit = self.admission.admit_beyond_limit(&self.record.principal);
                let deferred = self.stage.take_deferred();
                if let Stage::Running { slot, .. } = &mut self.stage {
                    *slot = Slot::Held(permit);
                }
                // Nothing waits for them any more; whoever brought them is told so.
                self.submit_all(deferred);
            }
            Slot::Held(_) | Slot::Released | Slot::Requested { .. } => {}
        }
    }

    /// Ends the turn that waits for a permit, if there is one.
    pub(super) fn fail_unadmitted(&mut self, failure: Failure) {
        if let Stage::Admitting(waiting) = &self.stage {
            let turn = waiting.turn;
            self.stage = Stage::Idle;
            report(self.end_unstarted(turn, Outcome::Interrupted(failure)), "the end of a turn");
        }
    }

    /// The permit of a prompt that goes to the agent.
    pub(super) fn permit_of(&self, pass: Pass) -> Permit {
        match pass {
            Pass::Granted(permit) => permit,
            Pass::Awaited(_) => self.admission.admit_beyond_limit(&self.record.principal),
        }
    }

    /// The permit of a turn that begins again with another agent.
    pub(super) fn permit_in(&self, slot: Slot) -> Permit {
        match slot {
            Slot::Held(permit) => permit,
            Slot::Released | Slot::Requested { .. } => self.admission.admit_beyond_limit(&self.record.principal),
        }
    }

    /// The turn whose prompt the agent has.
    pub(super) fn run_turn(&mut self, turn: Turn, permit: Permit) {
        self.stage = Stage::Running { turn: Box::new(turn), slot: Slot::Held(permit) };
    }
}
