//! The session's log with its bad days: what cannot be written is shown to nobody, and what is owed is written
//! first when the disk is back.

use crate::error::Error;
use crate::log::{Attachment, Draft, From, Pace, SessionLog};
use crate::model::{Event, Seq};
use crate::session::handle::Durable;
use crate::store::StoreError;

pub(super) struct Journal {
    log: SessionLog,
    state: State,
}

enum State {
    Sound,
    /// The last write failed. These ends of turns are owed: every turn has one.
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
    /// When it fails, the ends of turns among the drafts are kept as owed; the rest is dropped, and followers are
    /// let go, since silence must not look like an idle session.
    pub(super) fn append(&mut self, drafts: Vec<Draft>) -> Result<Seq, Error> {
        if let Err(error) = self.check() {
            self.owe(drafts);
            return Err(error);
        }
        if drafts.is_empty() {
            return Ok(self.log.last());
        }
        let ends = ends_among(&drafts);
        match self.log.append(drafts) {
            Ok(_) => Ok(self.log.last()),
            Err(error) => {
                self.state = State::Broken { error: error.clone(), owed: ends };
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

    pub(super) fn attach(&mut self, from: From, pace: Pace) -> Result<Attachment, Error> {
        self.check()?;
        Ok(self.log.attach(from, pace))
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

    fn owe(&mut self, drafts: Vec<Draft>) {
        if let State::Broken { owed, .. } = &mut self.state {
            owed.extend(drafts.into_iter().filter(|draft| matches!(draft.event, Event::Ended(_))));
        }
    }
}

fn ends_among(drafts: &[Draft]) -> Vec<Draft> {
    drafts.iter().filter(|draft| matches!(draft.event, Event::Ended(_))).cloned().collect()
}
