//! The questions in a log that nobody has answered yet, as the entries they came in: whoever attaches late is asked
//! them again, wherever in the log they stand.

use super::LogEntry;
use crate::model::Event;

#[derive(Default)]
pub(super) struct Pending {
    asked: Vec<LogEntry>,
}

impl Pending {
    pub(super) fn note(&mut self, entries: &[LogEntry]) {
        for entry in entries {
            match &entry.event {
                Event::Asked(_) => self.asked.push(entry.clone()),
                Event::Answered { ask, .. } => self.asked.retain(|asked| !is(asked, *ask)),
                Event::Ended(_) => self.asked.retain(|asked| asked.turn != entry.turn),
                _ => {}
            }
        }
    }

    pub(super) fn open(&self) -> Vec<LogEntry> {
        self.asked.clone()
    }
}

fn is(entry: &LogEntry, wanted: crate::model::AskId) -> bool {
    matches!(&entry.event, Event::Asked(ask) if ask.id == wanted)
}
