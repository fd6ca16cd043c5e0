//! Turns that had not ended when the process did. Every turn has exactly one end: these get theirs when the session
//! comes back.

use std::collections::BTreeSet;

use crate::log::LogEntry;
use crate::model::{Event, Seq, SessionId, TurnId};
use crate::store::{Store, StoreError};

/// Entries read at once while going back.
const STEP: usize = 256;

/// Goes back in the log as far as it must to be sure, and no further.
pub(super) async fn unfinished_turns(
    store: &dyn Store,
    id: SessionId,
    last: Seq,
    last_turn: Option<TurnId>,
    tail: &[LogEntry],
) -> Result<Vec<TurnId>, StoreError> {
    let Some(last_turn) = last_turn else { return Ok(Vec::new()) };
    let mut seen = Seen { last_turn, started: None, ended: BTreeSet::new(), complete: false };
    seen.go_back(tail);
    let mut until = tail.first().map_or(last, |entry| Seq(entry.seq.0 - 1));
    while !seen.complete && until > Seq::START {
        let after = Seq(until.0.saturating_sub(STEP as u64));
        seen.go_back(&store.read(id, after, until, STEP).await?);
        until = after;
    }
    Ok(seen.unfinished().collect())
}

/// What is known of the turns from the end of the log back to some entry.
struct Seen {
    last_turn: TurnId,
    /// The newest turn that its agent worked on. Turns run one after another, so all before it have ended.
    started: Option<TurnId>,
    ended: BTreeSet<TurnId>,
    /// Older entries cannot tell anything new.
    complete: bool,
}

impl Seen {
    fn go_back(&mut self, entries: &[LogEntry]) {
        for entry in entries.iter().rev() {
            let Some(turn) = entry.turn else { continue };
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

    fn unfinished(&self) -> impl Iterator<Item = TurnId> {
        let first = self.started.map_or(1, |turn| turn.0);
        (first..=self.last_turn.0).map(TurnId).filter(|turn| !self.ended.contains(turn))
    }
}
