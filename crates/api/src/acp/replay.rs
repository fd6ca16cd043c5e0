//! Which entries of a log a client is shown again: after a number it saw, or by time and by whole turns.

use gembridge_core::log::{Batch, LogEntry};
use gembridge_core::model::{Seq, SessionId, Timestamp, TurnId};
use gembridge_core::store::{Logs, StoreError, TurnStart};

use super::error::Refusal;
use super::wire::ReplayWish;

/// What is shown: entries after one number, later than one time and earlier than another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub after: Seq,
    pub since: Option<Timestamp>,
    pub before: Option<Timestamp>,
    /// Entries of earlier turns are left out: the end of an answer whose beginning is not shown.
    pub turn: Option<TurnId>,
}

/// Turns are looked at one by one where a time says which; beyond so many, the oldest are not.
const MOST_TURNS: usize = 1 << 20;

impl Window {
    pub fn shows(&self, entry: &LogEntry) -> bool {
        entry.seq > self.after
            && (entry.turn.is_none() || entry.turn >= self.turn)
            && self.since.is_none_or(|since| entry.at > since)
            && self.before.is_none_or(|before| entry.at < before)
    }

    /// The entries that are shown of a batch.
    pub fn shown(&self, batch: Batch) -> Batch {
        if batch.iter().all(|entry| self.shows(entry)) {
            return batch;
        }
        batch.iter().filter(|entry| self.shows(entry)).cloned().collect()
    }

    /// Whether nothing of the log is left out.
    pub fn is_whole(&self) -> bool {
        !self.is_cut() && self.before.is_none()
    }

    /// Whether anything before it is left out.
    pub fn is_cut(&self) -> bool {
        self.after > Seq::START || self.since.is_some_and(|since| since > Timestamp(0))
    }
}

pub fn check(wish: &ReplayWish) -> Result<(), Refusal> {
    if wish.after.is_some() && (wish.limit.is_some() || wish.since.is_some() || wish.before.is_some()) {
        return Err(Refusal::params("`after` stands alone; leave `limit`, `since` and `before` out"));
    }
    Ok(())
}

/// Finds where to begin. The last turns of a log are found without reading it. `begun` is the turn that runs now: those
/// after it wait, and do not count.
pub async fn window(
    logs: &dyn Logs,
    id: SessionId,
    wish: &ReplayWish,
    begun: Option<TurnId>,
    waiting: usize,
) -> Result<Window, StoreError> {
    if let Some(after) = wish.after {
        return Ok(Window { after: Seq(after), ..Window::default() });
    }
    let (since, before) = (wish.since.map(Timestamp), wish.before.map(Timestamp));
    let wanted = match wish.limit {
        None if since.is_none() => 0,
        Some(limit) if since.is_none() && before.is_none() => {
            usize::try_from(limit).unwrap_or(MOST_TURNS).saturating_add(waiting)
        }
        None | Some(_) => MOST_TURNS,
    };
    let starts = match wanted.min(MOST_TURNS) {
        0 => Vec::new(),
        turns => logs.turn_starts(id, turns).await?,
    };
    let starts = Starts { newest: &starts, is_all: starts.len() < wanted, begun };
    let (after, turn) = starts.first(since, before, wish.limit);
    Ok(Window { after, since, before, turn })
}

/// Turns of a session, the newest last.
struct Starts<'a> {
    newest: &'a [TurnStart],
    /// There are none before them.
    is_all: bool,
    begun: Option<TurnId>,
}

impl Starts<'_> {
    /// The number before the first turn that is shown, and that turn. A turn that began before `since` may still have
    /// entries after it.
    fn first(&self, since: Option<Timestamp>, before: Option<Timestamp>, limit: Option<u64>) -> (Seq, Option<TurnId>) {
        let everything = (Seq::START, None);
        let from = since.map_or(0, |since| self.newest.partition_point(|start| start.at <= since).saturating_sub(1));
        let until = before.map_or(self.newest.len(), |before| self.newest.partition_point(|start| start.at < before));
        let shown = self.newest.get(from..until).unwrap_or_default();
        // What came before the very first turn belongs to it.
        let from_first = match shown.first() {
            Some(start) if from > 0 || !self.is_all => (start.after, None),
            _ => everything,
        };
        let Some(limit) = limit else { return if since.is_some() { from_first } else { everything } };
        let waiting = self.begun.map_or(0, |begun| shown.iter().filter(|start| start.turn > begun).count());
        let limit = match usize::try_from(limit).unwrap_or(usize::MAX) {
            0 => 0,
            limit => limit.saturating_add(waiting),
        };
        match shown.len().checked_sub(limit).map(|at| shown.get(at)) {
            // None of the turns: nothing that is there now.
            Some(None) => (Seq(u64::MAX), None),
            Some(Some(start)) => (start.after, Some(start.turn)),
            // Fewer turns than asked for: all of them, and what came before the first.
            None => from_first,
        }
    }
}

#[cfg(test)]
mod tests {
    use gembridge_core::model::TurnId;

    use super::*;

    /// Five turns of ten entries each, one every hundred milliseconds.
    fn starts() -> Vec<TurnStart> {
        (0..5).map(|n| TurnStart { turn: TurnId(n + 1), after: Seq(n * 10), at: Timestamp(1_000 + n * 100) }).collect()
    }

    #[test]
    fn since_then_before_then_limit_decide_where_a_replay_begins() {
        let at = |millis: u64| Some(Timestamp(millis));
        for (since, before, limit, expected) in [
            (None, None, None, Seq::START),
            (None, None, Some(2), Seq(30)),
            (None, None, Some(9), Seq::START),
            (None, None, Some(0), Seq(u64::MAX)),
            // The third turn began before it and may go on after it.
            (at(1_250), None, None, Seq(20)),
            (at(1_200), None, None, Seq(20)),
            (at(9_999), None, None, Seq(40)),
            (at(5), None, None, Seq::START),
            (None, at(1_300), Some(1), Seq(20)),
            (None, at(1_301), Some(1), Seq(30)),
            // Nothing is before it: the time leaves everything out.
            (None, at(1), Some(1), Seq::START),
            (at(1_100), at(1_400), Some(2), Seq(20)),
            (at(1_100), at(1_400), Some(9), Seq(10)),
        ] {
            let all = starts();
            let starts = Starts { newest: &all, is_all: true, begun: None };
            assert_eq!(starts.first(since, before, limit).0, expected, "{since:?} {before:?} {limit:?}");
        }
    }
    #[test]
    fn turns_that_wait_do_not_count_and_earlier_answers_are_not_shown_by_their_ends() {
        let all = starts();
        let starts = |begun| Starts { newest: &all, is_all: false, begun };
        assert_eq!(starts(None).first(None, None, Some(1)), (Seq(40), Some(TurnId(5))));
        assert_eq!(starts(Some(TurnId(3))).first(None, None, Some(1)), (Seq(20), Some(TurnId(3))));
        assert_eq!(starts(Some(TurnId(3))).first(None, None, Some(0)).0, Seq(u64::MAX));
        let window = Window { after: Seq(20), turn: Some(TurnId(3)), ..Window::default() };
        let entry = |turn: Option<u64>| LogEntry {
            seq: Seq(21),
            at: Timestamp(0),
            turn: turn.map(TurnId),
            event: gembridge_core::model::Event::Started,
            frame: None,
        };
        assert!(window.shows(&entry(None)) && window.shows(&entry(Some(3))) && !window.shows(&entry(Some(2))));
    }
}
