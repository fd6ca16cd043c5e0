//! Questions of the agent in a turn: each is answered exactly once, by a person, a rule, or the end of the wait.

use std::time::Duration;

use tokio::time::Instant;

use super::{Action, State, Turn};
use crate::error::Error;
use crate::model::{Answer, AnsweredBy, Ask, AskId, ClientId, Event, Frame};
use crate::turn::Attendance;

pub(super) struct OpenAsk {
    pub ask: Ask,
    asked: Instant,
}

/// Whether a client is there that can answer, as the turn last heard.
#[derive(Clone, Copy)]
pub(super) enum Attended {
    AsOf(Instant),
    NotSince(Instant),
}

/// While a question waits for somebody, the owner of the session looks this often whether a client is still there: none says
/// that it leaves.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Turn {
    /// The questions that wait for an answer, oldest first.
    pub fn open_asks(&self) -> impl Iterator<Item = &Ask> {
        self.asks.iter().map(|open| &open.ask)
    }

    /// Whether a client is there that can answer. To be told before a question comes, and whenever the deadline of the turn
    /// passes.
    pub fn attend(&mut self, attendance: Attendance, now: Instant) {
        self.attended = match (attendance, self.attended) {
            (Attendance::Somebody, _) => Attended::AsOf(now),
            (Attendance::Nobody, Attended::AsOf(_)) => Attended::NotSince(now),
            (Attendance::Nobody, alone) => alone,
        };
    }

    /// When the open questions must be looked at again.
    pub(super) fn asks_deadline(&self) -> Option<Instant> {
        let first = self.asks.iter().map(|open| self.expires(open)).min()?;
        Some(match self.attended {
            Attended::AsOf(seen) => first.min(seen + LOOK_AGAIN),
            Attended::NotSince(_) => first,
        })
    }

    /// When a question is answered with no, if everybody stays or leaves as it is now.
    fn expires(&self, open: &OpenAsk) -> Instant {
        let at_last = open.asked + self.limits.answer;
        match self.attended {
            Attended::AsOf(_) => at_last,
            Attended::NotSince(since) => at_last.min(since.max(open.asked) + self.limits.answer_alone),
        }
    }

    /// Somebody answers a question. The first answer wins; every later one is refused.
    pub fn on_answer(
        &mut self,
        ask: AskId,
        answer: Answer,
        by: ClientId,
        now: Instant,
        actions: &mut Vec<Action>,
    ) -> Result<(), Error> {
        let open = self.asks.iter().find(|open| open.ask.id == ask).ok_or(Error::NotAsked)?;
        if !open.ask.accepts(&answer) {
            return Err(Error::Invalid(format!(
                "`{answer:?}` is not an answer to this question; answer with one of the options it offers"
            )));
        }
        self.resolve(ask, answer, AnsweredBy::Client(by), now, actions);
        Ok(())
    }

    fn attendance(&self) -> Attendance {
        match self.attended {
            Attended::AsOf(_) => Attendance::Somebody,
            Attended::NotSince(_) => Attendance::Nobody,
        }
    }

    pub(super) fn on_asked(&mut self, ask: Ask, frame: Option<Frame>, now: Instant, actions: &mut Vec<Action>) {
        let id = ask.id;
        let at_once = match &self.state {
            // An agent that waits for an answer would never get to its end.
            State::Cancelling { .. } | State::Draining { .. } | State::Ended => {
                Some((Answer::Cancelled, AnsweredBy::Cancel))
            }
            State::Running if self.asks.len() >= self.limits.open_asks => Some((ask.reject(), AnsweredBy::Policy)),
            State::Running => self.policy.decide(&ask, self.attendance()).map(|answer| (answer, AnsweredBy::Policy)),
        };
        actions.push(Action::Log { event: Event::Asked(Box::new(ask.clone())), frame });
        if let Some((answer, by)) = at_once {
            let event = Event::Answered { ask: id, answer: answer.clone(), by };
            actions.push(Action::Log { event, frame: None });
            actions.push(Action::AnswerAgent { ask: id, answer });
        } else {
            self.asks.push(OpenAsk { ask, asked: now });
            self.clock.wait_begins(now);
        }
    }

    /// The agent took its question back.
    pub(super) fn on_withdrawn(&mut self, ask: AskId, event: Event, now: Instant, actions: &mut Vec<Action>) {
        if let Some(at) = self.asks.iter().position(|open| open.ask.id == ask) {
            self.asks.remove(at);
            self.clock.wait_ends(now);
            actions.push(Action::Log { event, frame: None });
        }
    }

    pub(super) fn close_asks(&mut self, now: Instant, actions: &mut Vec<Action>) {
        while let Some(open) = self.asks.first() {
            self.resolve(open.ask.id, Answer::Cancelled, AnsweredBy::Cancel, now, actions);
        }
    }

    pub(super) fn expire_asks(&mut self, now: Instant, actions: &mut Vec<Action>) {
        while let Some(open) = self.asks.iter().find(|open| self.expires(open) <= now) {
            let (id, answer) = (open.ask.id, open.ask.reject());
            self.resolve(id, answer, AnsweredBy::Timeout, now, actions);
        }
    }

    fn resolve(&mut self, ask: AskId, answer: Answer, by: AnsweredBy, now: Instant, actions: &mut Vec<Action>) {
        self.asks.retain(|open| open.ask.id != ask);
        self.clock.wait_ends(now);
        actions.push(Action::Log { event: Event::Answered { ask, answer: answer.clone(), by }, frame: None });
        actions.push(Action::AnswerAgent { ask, answer });
    }
}
