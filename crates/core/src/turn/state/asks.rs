//! Questions of the agent in a turn: each is answered exactly once, by a person, a rule, or the end of the wait.

use tokio::time::Instant;

use super::{Action, State, Turn};
use crate::error::Error;
use crate::model::{Answer, AnsweredBy, Ask, AskId, ClientId, Event, Frame};

pub(super) struct OpenAsk {
    pub ask: Ask,
    pub until: Instant,
}

impl Turn {
    /// The questions that wait for an answer, oldest first.
    pub fn open_asks(&self) -> impl Iterator<Item = &Ask> {
        self.asks.iter().map(|open| &open.ask)
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

    pub(super) fn on_asked(&mut self, ask: Ask, frame: Option<Frame>, now: Instant, actions: &mut Vec<Action>) {
        let id = ask.id;
        let at_once = match &self.state {
            // An agent that waits for an answer would never get to its end.
            State::Cancelling { .. } | State::Draining { .. } | State::Ended => {
                Some((Answer::Cancelled, AnsweredBy::Cancel))
            }
            State::Running if self.asks.len() >= self.limits.open_asks => Some((ask.reject(), AnsweredBy::Policy)),
            State::Running => self.policy.decide(&ask, self.attendance).map(|answer| (answer, AnsweredBy::Policy)),
        };
        actions.push(Action::Log { event: Event::Asked(Box::new(ask.clone())), frame });
        if let Some((answer, by)) = at_once {
            let event = Event::Answered { ask: id, answer: answer.clone(), by };
            actions.push(Action::Log { event, frame: None });
            actions.push(Action::AnswerAgent { ask: id, answer });
        } else {
            self.asks.push(OpenAsk { ask, until: now + self.limits.answer });
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
        while let Some(open) = self.asks.iter().find(|open| open.until <= now) {
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
