//! The session's log, and what happens when it cannot be written: what is not stored is shown to no reader,
//! and the ends of turns and questions that are owed are written first when the disk is back.

use crate::error::Error;
use crate::log::{Attachment, Backpressure, Draft, From, SessionLog};
use crate::model::{Answer, AnsweredBy, AskId, CallId, Event, Prompt, ReturnedBy, Seq, ToolReturn, TurnId};
use crate::session::handle::Durable;
use crate::store::StoreError;

pub(super) struct Journal {
    log: SessionLog,
    state: State,
}

enum State {
    Sound,
    /// The last write failed. These are owed: every turn has an end, every question an answer.
    Broken {
        error: StoreError,
        owed: Vec<Draft>,
    },
}

impl Journal {
    pub(super) fn new(log: SessionLog) -> Self {
        Self { log, state: State::Sound }
    }

    /// Writes the drafts as one batch, after what is owed. The number is that of the last entry.
    ///
    /// When it fails, the ends of turns and questions among the drafts are kept as owed; the rest is dropped, and
    /// followers are let go, since silence must not look like an idle session.
    pub(super) fn append(&mut self, drafts: Vec<Draft>) -> Result<Seq, Error> {
        if let Err(error) = self.check() {
            if let State::Broken { owed, .. } = &mut self.state {
                owed.extend(owed_of(drafts.iter().map(|draft| (draft.turn, &draft.event))));
            }
            return Err(error);
        }
        if drafts.is_empty() {
            return Ok(self.log.last());
        }
        let entries = self.log.number(drafts);
        match self.log.add(&entries) {
            Ok(()) => Ok(self.log.last()),
            Err(error) => {
                let owed = owed_of(entries.iter().map(|entry| (entry.turn, &entry.event)));
                self.state = State::Broken { error: error.clone(), owed };
                self.log.dismiss_followers();
                Err(Error::Store(error))
            }
        }
    }

    /// Tries to write what is owed. While that fails, the session takes nothing new.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        let State::Broken { error, owed } = &mut self.state else { return Ok(()) };
        match self.log.append(owed.clone()) {
            Ok(_) => {
                self.state = State::Sound;
                Ok(())
            }
            Err(newer) => {
                *error = newer.clone();
                Err(Error::Store(newer))
            }
        }
    }

    pub(super) fn last(&self) -> Seq {
        self.log.last()
    }

    pub(super) fn prompt_of(&self, turn: TurnId) -> Option<&Prompt> {
        self.log.prompt_of(turn)
    }

    pub(super) fn attach(&mut self, from: From, backpressure: Backpressure) -> Result<Attachment, Error> {
        self.check()?;
        Ok(self.log.attach(from, backpressure))
    }

    pub(super) fn followers(&mut self) -> usize {
        self.log.followers()
    }

    pub(super) fn is_held(&self) -> bool {
        self.log.is_held()
    }

    pub(super) async fn release(&mut self) {
        self.log.release().await;
    }

    pub(super) fn sync(&mut self) -> Durable {
        if let State::Broken { error, .. } = &self.state {
            let error = error.clone();
            return Box::pin(async move { Err(error) });
        }
        self.log.sync()
    }
}

/// What must not be missing in the log: the ends of turns, and the ends of the waits that are in it. A decision that
/// could not be stored was not taken, so a question counts as cancelled and a call as failed.
fn owed_of<'e>(unwritten: impl Iterator<Item = (Option<TurnId>, &'e Event)> + Clone) -> Vec<Draft> {
    let lost: Vec<Wait> = unwritten.clone().filter_map(|(_, event)| begun_by(event)).collect();
    let owed = unwritten.filter_map(|(turn, event)| {
        let event = match (event, ended_by(event)) {
            (Event::Ended(outcome), _) => Event::Ended(outcome.clone()),
            (_, None) => return None,
            (_, Some(wait)) if lost.contains(&wait) => return None,
            (_, Some(wait)) => wait.given_up(NOT_KEPT),
        };
        Some(Draft { turn, event, frame: None })
    });
    owed.collect()
}

/// What the agent is told of a result that could not be stored.
pub(super) const NOT_KEPT: &str = "the result of this call could not be stored, so it does not count";

/// Something that the agent waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Ask(AskId),
    Call(CallId),
}

impl Wait {
    /// It ends without an answer or a result.
    pub(super) fn given_up(self, why: &str) -> Event {
        match self {
            Self::Ask(ask) => Event::Answered { ask, answer: Answer::Cancelled, by: AnsweredBy::Cancel },
            Self::Call(call) => {
                Event::Returned { call, result: Box::new(ToolReturn::failed(why)), by: ReturnedBy::Cancel }
            }
        }
    }
}

/// The waits that begin among the drafts.
pub(super) fn waits_in(drafts: &[Draft]) -> Vec<Wait> {
    drafts.iter().filter_map(|draft| begun_by(&draft.event)).collect()
}

/// The wait that begins with this event.
pub(super) fn begun_by(event: &Event) -> Option<Wait> {
    match event {
        Event::Asked(ask) => Some(Wait::Ask(ask.id)),
        Event::Called(call) => Some(Wait::Call(call.id)),
        _ => None,
    }
}

/// The wait that ends with this event.
pub(super) fn ended_by(event: &Event) -> Option<Wait> {
    match event {
        Event::Answered { ask, .. } => Some(Wait::Ask(*ask)),
        Event::Returned { call, .. } => Some(Wait::Call(*call)),
        _ => None,
    }
}
