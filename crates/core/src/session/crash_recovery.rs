//! Turns that had not ended when the process did. Every turn has exactly one end, and so has every question and every
//! call in it: these get theirs when the session comes back.

use std::collections::BTreeSet;

use super::journal::{Wait, begun_by, ended_by};
use crate::log::{Draft, LogEntry};
use crate::model::{Event, Failure, FailureKind, Outcome, Seq, SessionId, TurnId};
use crate::store::{Logs, StoreError};

/// Entries read at once while going back.
const STEP: usize = 256;

/// The ends that are missing. Goes back in the log as far as it must to be sure, and no further.
pub(super) async fn unfinished_turns(
    logs: &dyn Logs,
    id: SessionId,
    last: Seq,
    last_turn: Option<TurnId>,
    tail: &[LogEntry],
) -> Result<Vec<Draft>, StoreError> {
    let Some(last_turn) = last_turn else { return Ok(Vec::new()) };
    let mut seen = Seen {
        last_turn,
        started: None,
        ended: BTreeSet::new(),
        settled: Vec::new(),
        open: Vec::new(),
        complete: false,
    };
    seen.go_back(tail);
    let mut until = tail.first().map_or(last, |entry| Seq(entry.seq.0 - 1));
    while !seen.complete && until > Seq::START {
        let after = Seq(until.0.saturating_sub(STEP as u64));
        seen.go_back(&logs.read(id, after, until, STEP).await?);
        until = after;
    }
    Ok(seen.ends())
}

/// What is known of the turns from the end of the log back to some entry.
struct Seen {
    last_turn: TurnId,
    /// The newest turn that its agent worked on. Turns run one after another, so all before it have ended.
    started: Option<TurnId>,
    ended: BTreeSet<TurnId>,
    /// Waits whose end is there and whose beginning is still to come.
    settled: Vec<Wait>,
    /// Waits without an end, the newest first.
    open: Vec<(TurnId, Wait)>,
    /// Older entries cannot tell anything new.
    complete: bool,
}

impl Seen {
    fn go_back(&mut self, entries: &[LogEntry]) {
        for entry in entries.iter().rev() {
            let Some(turn) = entry.turn else { continue };
            self.note_wait(turn, &entry.event);
            match entry.event {
                Event::Ended(_) => {
                    self.ended.insert(turn);
                }
                // Everything about this turn and those that waited behind it comes after its prompt.
                Event::Prompted { .. } => self.complete |= self.started == Some(turn),
                _ => {
                    self.started.get_or_insert(turn);
                }
            }
            self.complete |= self.started.is_some() && self.unfinished().next().is_none();
            if self.complete {
                return;
            }
        }
    }

    fn note_wait(&mut self, turn: TurnId, event: &Event) {
        self.settled.extend(ended_by(event));
        if let Some(wait) = begun_by(event) {
            match self.settled.iter().position(|settled| *settled == wait) {
                Some(at) => drop(self.settled.swap_remove(at)),
                None => self.open.push((turn, wait)),
            }
        }
    }

    fn ends(&self) -> Vec<Draft> {
        let why = "the gateway stopped while the turn ran; what came is kept";
        let draft = |turn, event| Draft { turn: Some(turn), event, frame: None };
        let mut ends = Vec::new();
        for turn in self.unfinished() {
            let waits = self.open.iter().rev().filter(|(of, _)| *of == turn);
            ends.extend(waits.map(|(_, wait)| draft(turn, wait.given_up(why))));
            let failure = Failure::new(FailureKind::ShuttingDown, why);
            ends.push(draft(turn, Event::Ended(Outcome::Interrupted(failure))));
        }
        ends
    }

    fn unfinished(&self) -> impl Iterator<Item = TurnId> {
        let first = self.started.map_or(1, |turn| turn.0);
        (first..=self.last_turn.0).map(TurnId).filter(|turn| !self.ended.contains(turn))
    }
}
