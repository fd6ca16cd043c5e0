//! What the agent is offered: a prompt that comes with tools waits until the agent has read their list, or for as long as
//! agents of its kind may take.

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::turns::Unsent;
use super::{Actor, Stage, answer};
use crate::driver::SessionSpec;
use crate::error::Error;
use crate::model::{Failure, FailureKind, TurnId};
use crate::session::agent::Agent;
use crate::session::history_replay::Past;
use crate::session::queue::Waiting;
use crate::session::session_tools::SessionTools;
use crate::tool_host::Offer;
use crate::turn::Turn;

/// What stands between a prompt and the agent that is there.
pub(super) enum Readiness {
    Ready,
    /// The agent has not read yet what it is offered.
    Unread,
    /// It was opened without an endpoint for tools.
    NoEndpoint,
}

impl Actor {
    /// Whether this can be offered to the agent that is there, or to one that is yet to come.
    pub(super) fn check_offer(&self, offer: &Offer) -> Result<(), Error> {
        if offer.is_empty() {
            return Ok(());
        }
        if self.tool_host.is_none() {
            return Err(Error::Invalid("this gateway runs without its tool bridge; leave the tools out".into()));
        }
        if self.agent.is_absent() || self.agent.has_tools() { Ok(()) } else { Err(Error::MovedOn) }
    }

    /// The agent of this session, with an endpoint for the client's tools where it shall have some.
    pub(super) fn new_agent(&self) -> Agent {
        let mut spec = self.spec.clone();
        match self.new_tools(&mut spec) {
            Ok(tools) => Agent::open(&self.driver, spec, tools, self.past()),
            Err(failure) => Agent::failed(failure),
        }
    }

    /// What an agent that is opened now has not heard.
    fn past(&self) -> Past {
        let last_turn = match &self.stage {
            Stage::Admitting(waiting) | Stage::Opening(waiting) | Stage::Offering { waiting, .. } => {
                TurnId(waiting.turn.0 - 1)
            }
            Stage::Idle | Stage::Running { .. } | Stage::Settling { .. } => self.last_turn,
        };
        Past {
            logs: self.store.clone(),
            session: self.record.id,
            last: self.journal.last(),
            last_turn,
            budget: self.limits.recap_bytes,
        }
    }

    fn new_tools(&self, spec: &mut SessionSpec) -> Result<Option<SessionTools>, Failure> {
        let Some(host) = self.tool_host.as_ref().filter(|_| !self.offer.is_empty()) else { return Ok(None) };
        let (server, tools) = SessionTools::open(host.as_ref(), self.offer.clone())?;
        spec.tool_servers.insert(0, server);
        Ok(Some(tools))
    }

    /// Puts what the session offers before the agent that is there.
    pub(super) fn present(&mut self) -> Readiness {
        let offer = &self.offer;
        match self.agent.tools() {
            None if offer.is_empty() => Readiness::Ready,
            None => Readiness::NoEndpoint,
            Some(tools) => {
                tools.offer(offer);
                if tools.holds_prompts() { Readiness::Unread } else { Readiness::Ready }
            }
        }
    }

    /// Offers other tools while the turn waits for results.
    pub(super) fn on_offer(&mut self, turn: TurnId, offer: Offer, reply: oneshot::Sender<Result<(), Error>>) {
        let waits = |running: &Turn| running.id() == turn && running.parked_calls().next().is_some();
        let is_waiting = matches!(&self.stage, Stage::Running { turn: running, .. } if waits(running));
        // Less than there is takes an agent longer to read than a call in vain.
        if !is_waiting || !self.agent.has_tools() || self.offer.covers(&offer) {
            return answer(reply, Ok(()));
        }
        self.offer = offer;
        match self.present() {
            Readiness::Ready | Readiness::NoEndpoint => answer(reply, Ok(())),
            Readiness::Unread => {
                self.offering.retain(|waiting| !waiting.is_closed());
                self.offering.push(reply);
            }
        }
    }

    /// Whether the agent that is there may be prompted with this, or with what the session offers already.
    pub(super) fn is_ready_for(&mut self, new: Option<&Offer>) -> bool {
        let offer = new.unwrap_or(&self.offer);
        match self.agent.tools() {
            None => offer.is_empty(),
            Some(tools) => tools.is_ready_for(offer),
        }
    }

    pub(super) fn on_offer_read(&mut self) {
        for waiting in self.offering.drain(..) {
            answer(waiting, Ok(()));
        }
        if matches!(self.stage, Stage::Offering { .. }) {
            if let Err(unsent) = self.send_prompt() {
                self.end_unsent(unsent);
            }
            self.start_next();
        }
    }

    /// The agent did not come for the list in time. It may read it with the prompt, so it gets the prompt.
    pub(super) fn on_offer_unread(&mut self) {
        tracing::debug!(session = %self.record.id, "the agent has not read the list of tools; it is prompted without");
        if let Some(tools) = self.agent.tools() {
            tools.note_late();
        }
        self.on_offer_read();
    }

    /// Ends the turn whose prompt waits for the agent, if there is one.
    pub(super) fn fail_unsent(&mut self, failure: Failure) {
        if let Some(waiting) = self.stage.take_unsent() {
            self.end_unsent(Unsent::new(waiting, failure));
        }
    }

    /// The agent cannot be offered what the prompt comes with.
    pub(super) fn without_endpoint(waiting: Waiting) -> Unsent {
        let message = "the agent was opened without an endpoint for tools; begin a new session for them";
        Unsent::new(waiting, Failure::new(FailureKind::Unsupported, message))
    }

    /// The prompt waits from now on for the agent to read the list.
    pub(super) fn await_reading(&mut self, waiting: Waiting) {
        self.stage = Stage::Offering { waiting, until: Instant::now() + self.limits.tools_ready };
    }
}
