//! From a prompt that waits to a turn that has ended: what the turn decides is carried out here.

use tokio::time::Instant;

use super::offers::Readiness;
use super::{Actor, Stage, report};
use crate::admission::Permit;
use crate::driver::{CloseMode, Resume};
use crate::error::Error;
use crate::log::Draft;
use crate::model::{Answer, Event, Failure, FailureKind, Outcome, Prompt, Seq, Timestamp, ToolReturn, TurnId};
use crate::session::agent::Agent;
use crate::session::journal::{NOT_KEPT, ended_by, waits_in};
use crate::session::queue::{Attempt, Memory, Pass, Waiting};
use crate::tool_host::Offer;
use crate::turn::{Action, Turn};

/// A prompt that the agent did not take.
pub(super) struct Unsent {
    pub waiting: Box<Waiting>,
    pub failure: Failure,
}

impl Unsent {
    pub(super) fn new(waiting: Waiting, failure: Failure) -> Self {
        Self { waiting: Box::new(waiting), failure }
    }
}

impl Actor {
    /// Begins the next waiting turn, if the session is free.
    pub(super) fn start_next(&mut self) {
        while matches!(self.stage, Stage::Idle) {
            let Some(waiting) = self.queue.pop() else { return };
            self.admit(waiting);
        }
    }

    /// Begins a turn that has its permit. The session is idle again where it cannot begin.
    pub(super) fn begin(&mut self, mut waiting: Waiting) {
        if let Some(offer) = waiting.offer.take() {
            self.offer = *offer;
        }
        // An agent shall not work for a log that cannot take it.
        if let Err(error) = self.journal.check() {
            return self.end_unsent(Unsent::new(waiting, error.into_failure()));
        }
        self.stage = Stage::Opening(waiting);
        if self.agent.has_forgotten() {
            // The next one hears all of it from us.
            self.close_agent(CloseMode::Release);
            self.spec.resume = None;
        }
        if self.agent.live().is_none() {
            return self.open_agent();
        }
        match self.send_prompt() {
            // It died since its last turn, and the news of it are still on the way: another one takes the prompt.
            Err(Unsent { waiting, failure }) if failure.kind == FailureKind::Crashed => {
                self.agent = Agent::Absent;
                self.agent_lost(failure.message);
                self.stage = Stage::Opening(*waiting);
                self.open_agent();
            }
            Err(unsent) => self.end_unsent(unsent),
            Ok(()) => {}
        }
    }

    /// Whether nothing stands between the agent and a prompt that comes with this.
    pub(super) fn is_free_for(&mut self, offer: Option<&Offer>) -> bool {
        matches!(self.stage, Stage::Idle)
            && self.queue.len() == 0
            && self.agent.knows_all()
            && self.is_ready_for(offer)
            && self.journal.check().is_ok()
    }

    /// Hands a prompt to the agent that is there. Where it does not take it, the prompt goes the long way.
    pub(super) fn hand_over(&mut self, prompt: &Prompt) -> bool {
        self.agent.live().is_some_and(|agent| agent.prompt(prompt).is_ok())
    }

    /// Writes a prompt that the agent has, and its start, with one write. Gives the number of the prompt.
    pub(super) fn log_start(
        &mut self,
        id: TurnId,
        prompted: Event,
        offer: Option<Offer>,
        permit: Permit,
    ) -> Result<Seq, Error> {
        let draft = |event| Draft { turn: Some(id), event, frame: None };
        match self.journal.append(vec![draft(prompted), draft(Event::Started)]) {
            Ok(last) => {
                if let Some(offer) = offer {
                    self.offer = offer;
                }
                let turn = Turn::start(self.record.id, id, self.limits, self.policy.clone(), Instant::now());
                self.run_turn(turn, permit);
                self.note_told(None, last);
                Ok(Seq(last.0 - 1))
            }
            Err(error) => {
                // For the log it never was, and the agent is told to stop.
                self.order(Action::CancelAgent);
                self.stage = Stage::Settling { until: Instant::now() + self.limits.cancel_grace };
                Err(error)
            }
        }
    }

    pub(super) fn open_agent(&mut self) {
        if self.agent.is_absent() {
            self.agent = self.new_agent();
        }
    }

    /// Hands the prompt at the head, if there is one, to the agent that is there.
    pub(super) fn send_prompt(&mut self) -> Result<(), Unsent> {
        if self.agent.live().is_none() {
            return Ok(());
        }
        let Some(waiting) = self.stage.take_unsent() else { return Ok(()) };
        match self.present() {
            Readiness::Ready => {}
            Readiness::Unread => {
                self.await_reading(waiting);
                return Ok(());
            }
            Readiness::NoEndpoint => return Err(Self::without_endpoint(waiting)),
        }
        let retold = match self.agent.prompt(&waiting) {
            Ok(retold) => retold,
            Err(failure) => return Err(Unsent::new(waiting, failure)),
        };
        let mut turn = Turn::start(self.record.id, waiting.turn, self.limits, self.policy.clone(), Instant::now());
        let started = match waiting.attempt {
            Attempt::First => Some(Event::Started),
            Attempt::Second => None,
        };
        if waiting.attempt == Attempt::Second || waiting.memory == Memory::InPrompt {
            turn.keep();
        }
        let permit = self.permit_of(waiting.pass);
        self.run_turn(turn, permit);
        let events = [retold, started].into_iter().flatten();
        self.act(events.map(|event| Action::Log { event, frame: None }).collect());
        Ok(())
    }

    /// The agent died before it gave any sign of the turn: nothing is lost, and another one gets the prompt, once.
    pub(super) fn begin_again(&mut self, failure: &Failure, before: &mut Vec<Action>) -> bool {
        let Stage::Running { turn, .. } = &self.stage else { return false };
        if failure.kind != FailureKind::Crashed || !turn.is_untouched() {
            return false;
        }
        let turn = turn.id();
        let Some(prompt) = self.journal.prompt_of(turn).cloned() else { return false };
        if !before.is_empty() {
            self.act(std::mem::take(before));
        }
        tracing::info!(session = %self.record.id, %failure, "the agent died before it did anything; another one is asked");
        let memory = self.memory_for(&prompt);
        let Stage::Running { slot, .. } = std::mem::replace(&mut self.stage, Stage::Idle) else { return false };
        let pass = Pass::Granted(self.permit_in(slot));
        let waiting = Waiting { turn, prompt, memory, attempt: Attempt::Second, offer: None, pass };
        self.stage = Stage::Opening(waiting);
        self.open_agent();
        true
    }

    pub(super) fn end_unsent(&mut self, unsent: Unsent) {
        let ended = self.end_unstarted(unsent.waiting.turn, Outcome::Interrupted(unsent.failure));
        report(ended, "the end of a turn");
    }

    /// The agent is gone. The next one may still find the session in its own files.
    pub(super) fn agent_lost(&mut self, reason: String) {
        self.lost = Some(reason);
        let last = self.record.agent_session.clone();
        self.spec.resume = last.map(|agent_session| Resume { agent_session, last_used: Timestamp::now() });
    }

    pub(super) fn with_turn(&mut self, step: impl FnOnce(&mut Turn, Instant, &mut Vec<Action>)) {
        let Stage::Running { turn, .. } = &mut self.stage else { return };
        let mut actions = Vec::new();
        step(turn, Instant::now(), &mut actions);
        self.act(actions);
    }

    pub(super) fn act(&mut self, actions: Vec<Action>) {
        if let Err(error) = self.act_and_store(actions) {
            tracing::error!(session = %self.record.id, %error, "the session's log cannot be written");
        }
    }

    /// Carries out what was decided: the log first, then the agent. On an error nothing was stored, nothing was
    /// allowed to the agent, and the turn is over.
    pub(super) fn act_and_store(&mut self, actions: Vec<Action>) -> Result<(), Error> {
        let (mut turn, agent_ended) = match &self.stage {
            Stage::Running { turn, .. } => {
                self.published.set_awaits_results(turn.parked_calls().next().is_some());
                (Some(turn.id()), turn.is_ended())
            }
            Stage::Idle | Stage::Admitting(_) | Stage::Opening(_) | Stage::Offering { .. } | Stage::Settling { .. } => {
                (None, true)
            }
        };
        let mut drafts = Vec::with_capacity(actions.len());
        let mut orders = Vec::new();
        let mut ended_well = false;
        for action in actions {
            match action {
                Action::Log { event, frame } => {
                    let ends = matches!(event, Event::Ended(_));
                    ended_well |= matches!(event, Event::Ended(Outcome::Finished(_)));
                    drafts.push(Draft { turn, event, frame });
                    if ends {
                        // What comes in the same batch after the end is no part of the turn.
                        turn = None;
                    }
                }
                order => orders.push(order),
            }
        }
        let stored = self.write(drafts);
        for order in orders {
            self.order(match order {
                // A decision that is not in the log was not taken.
                Action::AnswerAgent { ask, .. } if stored.is_err() => {
                    Action::AnswerAgent { ask, answer: Answer::Cancelled }
                }
                Action::ReturnCall { call, .. } if stored.is_err() => {
                    Action::ReturnCall { call, result: ToolReturn::failed(NOT_KEPT) }
                }
                order => order,
            });
        }
        if let Stage::Running { turn, .. } = &self.stage
            && turn.is_ended()
        {
            let id = turn.id();
            if turn.has_called() && !(ended_well && stored.is_ok()) {
                self.receipts.forget(id);
            }
            if !ended_well {
                self.agent.was_cut();
            } else if let Some(agent_session) = self.agent.has_heard(id) {
                self.record.agent_session = Some(agent_session);
                self.keep_record();
            }
            self.after_turn(agent_ended);
        } else {
            self.settle_slot();
        }
        stored
    }

    fn after_turn(&mut self, agent_ended: bool) {
        let deferred = self.stage.take_deferred();
        self.stage = if agent_ended || self.agent.live().is_none() {
            Stage::Idle
        } else {
            Stage::Settling { until: Instant::now() + self.limits.cancel_grace }
        };
        self.idle_since = Instant::now();
        self.note_use();
        self.submit_all(deferred);
        self.start_next();
    }

    pub(super) fn order(&mut self, order: Action) {
        if let Action::ReturnCall { call, result } = order {
            return self.return_call(call, result);
        }
        let Some(agent) = self.agent.live() else { return };
        let sent = match order {
            Action::CancelAgent => agent.cancel(),
            Action::AnswerAgent { ask, answer } => match self.asks.take(ask) {
                Some(theirs) => agent.answer(theirs, answer),
                None => Ok(()),
            },
            Action::GiveUpAgent => {
                self.agent_lost("the agent did not obey a cancel and was ended".into());
                self.close_agent(CloseMode::Kill);
                Ok(())
            }
            Action::Log { .. } | Action::ReturnCall { .. } => Ok(()),
        };
        // A command that cannot reach the agent means that the agent is going: its loss comes as a signal.
        if let Err(failure) = sent {
            tracing::warn!(session = %self.record.id, %failure, "the agent could not be told");
        }
    }

    /// Writes what a turn brought. A turn that cannot be written is over.
    fn write(&mut self, drafts: Vec<Draft>) -> Result<(), Error> {
        let lost = waits_in(&drafts);
        let told_before = self.told_before(&drafts);
        let error = match self.journal.append(drafts) {
            Ok(newest) => {
                self.note_told(told_before, newest);
                return Ok(());
            }
            Err(error) => error,
        };
        let Stage::Running { turn, .. } = &mut self.stage else { return Err(error) };
        let (id, mut actions) = (turn.id(), Vec::new());
        turn.abort(error.clone().into_failure(), Instant::now(), &mut actions);
        for action in actions {
            match action {
                Action::Log { event, .. } if ended_by(&event).is_some_and(|wait| lost.contains(&wait)) => {}
                Action::Log { event, frame } => {
                    let owed = self.journal.append(vec![Draft { turn: Some(id), event, frame }]);
                    report(owed.map(|_| ()), "the end of a turn");
                }
                order => self.order(order),
            }
        }
        Err(error)
    }

    /// Ends a turn whose prompt never went out.
    pub(super) fn end_unstarted(&mut self, turn: TurnId, outcome: Outcome) -> Result<(), Error> {
        let end = Draft { turn: Some(turn), event: Event::Ended(outcome), frame: None };
        self.journal.append(vec![end]).map(|_| ())
    }
}
