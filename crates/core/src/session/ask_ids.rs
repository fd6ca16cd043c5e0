//! The numbers of a session's questions. Drivers number theirs as they like; the log and the clients know these.

use std::collections::HashMap;

use crate::model::{AskId, Event, Seq};

/// Unique in the session's log, whichever agent asked, and whichever process held the session then. A number is
/// never larger than that of the question's entry in the log, so a process that counts on from the last entry repeats none.
pub(super) struct AskIds {
    last: u64,
    /// What the agent that is there calls the questions that wait.
    theirs: HashMap<AskId, AskId>,
    /// Those of them that it has taken back.
    taken_back: Vec<AskId>,
}

/// No question has this number.
const NONE: AskId = AskId(0);

impl AskIds {
    pub(super) fn after(last: Seq) -> Self {
        Self { last: last.0, theirs: HashMap::new(), taken_back: Vec::new() }
    }

    /// Numbers a question that the agent asks, and finds the one that it takes back.
    pub(super) fn number(&mut self, event: &mut Event) {
        match event {
            Event::Asked(ask) => {
                self.last += 1;
                let theirs = std::mem::replace(&mut ask.id, AskId(self.last));
                self.theirs.insert(ask.id, theirs);
            }
            Event::Answered { ask, .. } => {
                let ours = self.theirs.iter().find(|(_, theirs)| *theirs == ask).map(|(ours, _)| *ours);
                self.taken_back.extend(ours);
                *ask = ours.unwrap_or(NONE);
            }
            _ => {}
        }
    }

    /// What the agent calls a question that is answered now. `None`: it does not wait for the answer any more.
    pub(super) fn take(&mut self, ask: AskId) -> Option<AskId> {
        self.theirs.remove(&ask)
    }

    /// What the agent took back has been dealt with, answers that were on their way included.
    pub(super) fn forget_taken_back(&mut self) {
        for ask in self.taken_back.drain(..) {
            self.theirs.remove(&ask);
        }
    }

    /// Another agent is there, which has asked nothing.
    pub(super) fn forget_all(&mut self) {
        self.taken_back.clear();
        self.theirs.clear();
    }
}
