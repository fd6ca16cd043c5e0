//! The turn machine. Pure: no await, no channel, and time comes as an argument. The actor around it is a loop.

mod asks;
mod calls;

use std::time::Duration;

use tokio::time::Instant;

use self::asks::{Attended, OpenAsk};
use self::calls::Calls;
pub use self::calls::NewCall;
use super::clock::{Clock, RanOut};
use super::policy::PermissionPolicy;
use crate::driver::{AgentStop, Signal, Update};
use crate::limit::Limits;
use crate::model::{
    Answer, AskId, CallId, Event, Failure, FailureKind, Frame, Outcome, ReturnedBy, SessionId, ToolReturn, TurnId,
    Usage,
};

/// What the actor must do, in this order.
#[derive(Clone, Debug)]
pub enum Action {
    Log {
        event: Event,
        frame: Option<Frame>,
    },
    CancelAgent,
    AnswerAgent {
        ask: AskId,
        answer: Answer,
    },
    /// The result of a call of a client's tool, for the place where the agent waits for it.
    ReturnCall {
        call: CallId,
        result: ToolReturn,
    },
    /// The agent no longer obeys: end its session, and its process with it.
    GiveUpAgent,
}

pub struct Turn {
    id: TurnId,
    state: State,
    clock: Clock,
    asks: Vec<OpenAsk>,
    calls: Calls,
    received: u64,
    usage: Usage,
    limits: Limits,
    policy: PermissionPolicy,
    attended: Attended,
    /// Something came of it, or it shall end as it does.
    touched: bool,
    /// When the agent last sent an update.
    last_update: Option<Instant>,
}

enum State {
    /// The agent works, or waits for somebody.
    Running,
    /// The agent was told to stop and has not said that it did.
    Cancelling {
        until: Instant,
        why: Why,
    },
    /// The agent said how it ended; updates may still trail behind.
    Draining {
        outcome: Outcome,
        until: Instant,
        at_most: Instant,
    },
    Ended,
}

/// Why a turn is being cancelled: what its end will be called.
#[derive(Clone)]
enum Why {
    Asked,
    Broken(Failure),
}

/// Trailing updates are waited for at most this long, however steadily they come.
const LONGEST_DRAIN: Duration = Duration::from_secs(30);

impl Turn {
    /// A turn whose prompt has just gone to the agent.
    pub fn start(session: SessionId, id: TurnId, limits: Limits, policy: PermissionPolicy, now: Instant) -> Self {
        Self {
            id,
            state: State::Running,
            clock: Clock::start(limits.idle, limits.turn, now),
            asks: Vec::new(),
            calls: Calls::none(session),
            received: 0,
            usage: Usage::default(),
            limits,
            policy,
            attended: Attended::NotSince(now),
            touched: false,
            last_update: None,
        }
    }

    /// Whatever becomes of it, it is not begun again.
    pub fn keep(&mut self) {
        self.touched = true;
    }

    /// Whether nothing came of it yet, and nobody wants its end: another agent could begin it as if for the first time.
    pub fn is_untouched(&self) -> bool {
        !self.touched && matches!(self.state, State::Running)
    }

    pub fn id(&self) -> TurnId {
        self.id
    }

    pub fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// When [`Turn::on_deadline`] must be called, if nothing happens before.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Running => {
                let clocks = [self.clock.deadline(), self.asks_deadline(), self.calls.deadline()];
                clocks.into_iter().flatten().min()
            }
            State::Cancelling { until, .. } => Some(*until),
            State::Draining { until, at_most, .. } => Some(*until.min(at_most)),
            State::Ended => None,
        }
    }

    pub fn on_agent(&mut self, signal: Signal, now: Instant, actions: &mut Vec<Action>) {
        if self.is_ended() {
            return;
        }
        self.clock.sign_of_life(now);
        match signal {
            Signal::Update(update) => self.on_update(update, now, actions),
            Signal::Done { stop, usage } => {
                if let Some(usage) = usage {
                    self.count_usage(&usage, actions);
                }
                self.on_done(stop, now, actions);
            }
            Signal::Failed(failure) => {
                let outcome = match &self.state {
                    // Some agents answer a cancelled prompt with an error.
                    State::Cancelling { why, .. } => why.outcome(),
                    // It has said how it ended; a second answer changes nothing.
                    State::Draining { .. } => return,
                    State::Running | State::Ended => Outcome::Interrupted(failure),
                };
                self.end(outcome, now, actions);
            }
            Signal::Lost(failure) => {
                let outcome = match &self.state {
                    State::Cancelling { why, .. } => why.outcome(),
                    State::Draining { outcome, .. } => outcome.clone(),
                    State::Running | State::Ended => Outcome::Interrupted(failure),
                };
                self.end(outcome, now, actions);
            }
        }
    }

    /// Somebody wants the turn to end. Asking twice changes nothing.
    pub fn on_cancel(&mut self, now: Instant, actions: &mut Vec<Action>) {
        match &self.state {
            State::Running => self.cancel(Why::Asked, now, actions),
            // Nobody waits for what may still trail behind.
            State::Draining { outcome, .. } => {
                let outcome = outcome.clone();
                self.end(outcome, now, actions);
            }
            State::Cancelling { .. } | State::Ended => {}
        }
    }

    /// Ends the turn now, whatever the agent does: the session or the gateway is going away, or the log is broken.
    pub fn abort(&mut self, failure: Failure, now: Instant, actions: &mut Vec<Action>) {
        if !self.is_ended() {
            self.close_calls("the turn was ended before a result came", ReturnedBy::Cancel, now, actions);
            self.end(Outcome::Interrupted(failure), now, actions);
            actions.push(Action::CancelAgent);
        }
    }

    pub fn on_deadline(&mut self, now: Instant, actions: &mut Vec<Action>) {
        match &self.state {
            State::Running => {
                self.expire_asks(now, actions);
                self.expire_calls(now, actions);
                if let Some(ran_out) = self.clock.ran_out(now) {
                    let failure = self.timed_out(ran_out);
                    self.cancel(Why::Broken(failure), now, actions);
                }
            }
            State::Cancelling { until, why } if *until <= now => {
                let outcome = why.outcome();
                self.end(outcome, now, actions);
                actions.push(Action::GiveUpAgent);
            }
            State::Draining { outcome, until, at_most } if *until.min(at_most) <= now => {
                let outcome = outcome.clone();
                self.end(outcome, now, actions);
            }
            State::Cancelling { .. } | State::Draining { .. } | State::Ended => {}
        }
    }

    fn on_update(&mut self, update: Update, now: Instant, actions: &mut Vec<Action>) {
        let Update { event, frame } = update;
        // What we do not know may have been work.
        let touched = self.touched || event.is_done_for_the_prompt() || matches!(event, Event::Other { .. });
        if !self.takes(frame.as_ref().map_or(0, |frame| frame.bytes.len()), now, actions) {
            if let Event::Asked(ask) = event {
                // Not kept, but an agent that waits for an answer could not obey the cancel.
                actions.push(Action::AnswerAgent { ask: ask.id, answer: Answer::Cancelled });
            }
            return;
        }
        self.touched = touched;
        self.last_update = Some(now);
        if let State::Draining { until, .. } = &mut self.state {
            *until = now + self.limits.quiet;
        }
        match event {
            Event::Asked(ask) => self.on_asked(*ask, frame, now, actions),
            Event::Answered { ask, .. } => self.on_withdrawn(ask, event, now, actions),
            Event::Usage(usage) => {
                self.usage.merge(&usage);
                actions.push(Action::Log { event: Event::Usage(self.usage), frame });
            }
            event => {
                if matches!(event, Event::Text(_) | Event::Thought(_) | Event::Content(_)) {
                    self.extend_gathering(now);
                }
                actions.push(Action::Log { event, frame });
            }
        }
    }

    fn on_done(&mut self, stop: AgentStop, now: Instant, actions: &mut Vec<Action>) {
        let outcome = match (&self.state, stop) {
            (State::Cancelling { why: Why::Broken(failure), .. }, _) => Outcome::Interrupted(failure.clone()),
            // The last word of the agent came before our cancel did.
            (_, AgentStop::Stopped(stop)) => Outcome::Finished(stop),
            (_, AgentStop::Cancelled) => Outcome::Cancelled,
        };
        if matches!(self.state, State::Draining { .. }) {
            return;
        }
        // Where nothing came before the end, nothing trails behind it.
        match self.last_update.map(|last| last + self.limits.quiet).filter(|until| *until > now) {
            None => self.end(outcome, now, actions),
            Some(until) => {
                self.close_waits(now, actions);
                self.state = State::Draining { outcome, until, at_most: now + LONGEST_DRAIN };
            }
        }
    }

    fn cancel(&mut self, why: Why, now: Instant, actions: &mut Vec<Action>) {
        self.state = State::Cancelling { until: now + self.limits.cancel_grace, why };
        actions.push(Action::CancelAgent);
        self.close_calls("the turn was cancelled", ReturnedBy::Cancel, now, actions);
        self.close_asks(now, actions);
    }

    fn end(&mut self, outcome: Outcome, now: Instant, actions: &mut Vec<Action>) {
        self.close_waits(now, actions);
        self.state = State::Ended;
        actions.push(Action::Log { event: Event::Ended(outcome), frame: None });
    }

    /// The agent is at its end, and waits for nothing any more.
    fn close_waits(&mut self, now: Instant, actions: &mut Vec<Action>) {
        self.close_calls("the agent ended its turn before a result came", ReturnedBy::Agent, now, actions);
        self.close_asks(now, actions);
    }

    fn count_usage(&mut self, usage: &Usage, actions: &mut Vec<Action>) {
        let before = self.usage;
        self.usage.merge(usage);
        if self.usage != before {
            actions.push(Action::Log { event: Event::Usage(self.usage), frame: None });
        }
    }

    /// Counts what the agent sent. What is over the limit ends the turn and is not kept.
    fn takes(&mut self, bytes: usize, now: Instant, actions: &mut Vec<Action>) -> bool {
        self.touched = true;
        self.received += bytes as u64;
        let is_within = self.received <= self.limits.turn_bytes;
        if !is_within && matches!(self.state, State::Running) {
            let limit = self.limits.turn_bytes;
            let failure =
                Failure::new(FailureKind::LimitReached, format!("the agent sent more than {limit} bytes in one turn"));
            self.cancel(Why::Broken(failure), now, actions);
        }
        is_within
    }

    fn timed_out(&self, ran_out: RanOut) -> Failure {
        let seconds = self.clock.limit(ran_out).as_secs();
        let message = match ran_out {
            RanOut::Idle => format!("the agent was silent for {seconds} s"),
            RanOut::Total => format!("the turn took longer than {seconds} s"),
        };
        Failure::new(FailureKind::TimedOut, message)
    }
}

impl Why {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Asked => Outcome::Cancelled,
            Self::Broken(failure) => Outcome::Interrupted(failure.clone()),
        }
    }
}
