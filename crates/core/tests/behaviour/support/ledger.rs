//! What must be true of every log, whatever happened to its session.

use std::collections::{BTreeMap, BTreeSet};

use gembridge_core::log::LogEntry;
use gembridge_core::model::{AskId, CallId, Event, Outcome, TurnId};

/// Checks the order of the log, one end per turn as its last entry, at most one answer per question
/// and at most one result per call.
pub fn check(entries: &[LogEntry]) {
    let mut ended = BTreeSet::new();
    let mut answered: BTreeMap<AskId, usize> = BTreeMap::new();
    let mut returned: BTreeMap<CallId, usize> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate() {
        assert_eq!(entry.seq.0, at as u64 + 1, "numbers go up by one");
        assert!(at == 0 || entries[at - 1].at <= entry.at, "time never goes back in a log");
        if let Some(turn) = entry.turn {
            assert!(!ended.contains(&turn), "turn {turn:?} goes on after its end: {entry:?}");
            if matches!(entry.event, Event::Ended(_)) {
                ended.insert(turn);
            }
        }
        match &entry.event {
            Event::Asked(ask) => assert!(answered.insert(ask.id, 0).is_none(), "asked twice: {entry:?}"),
            Event::Answered { ask, .. } => {
                let answers = answered.get_mut(ask).expect("asked before it is answered");
                *answers += 1;
                assert_eq!(*answers, 1, "answered twice: {entry:?}");
            }
            Event::Called(call) => assert!(returned.insert(call.id, 0).is_none(), "called twice: {entry:?}"),
            Event::Returned { call, .. } => {
                let returns = returned.get_mut(call).expect("called before it returns");
                *returns += 1;
                assert_eq!(*returns, 1, "returned twice: {entry:?}");
            }
            Event::Parked(calls) => {
                assert!(!calls.is_empty(), "somebody is waited for: {entry:?}");
                assert!(calls.iter().all(|call| returned.get(call) == Some(&0)), "they all wait: {entry:?}");
            }
            _ => {}
        }
    }
}

/// Checks the same of a log in which nothing runs any more: every turn that began has ended.
pub fn check_settled(entries: &[LogEntry]) {
    check(entries);
    let began: BTreeSet<TurnId> = entries.iter().filter_map(|entry| entry.turn).collect();
    assert_eq!(outcomes(entries).keys().copied().collect::<BTreeSet<_>>(), began, "every turn has its end");
}

pub fn outcomes(entries: &[LogEntry]) -> BTreeMap<TurnId, Outcome> {
    let ends = entries.iter().filter_map(|entry| match (&entry.event, entry.turn) {
        (Event::Ended(outcome), Some(turn)) => Some((turn, outcome.clone())),
        _ => None,
    });
    ends.collect()
}

/// The kinds of events of a turn, in order, as short words.
pub fn story(entries: &[LogEntry], turn: TurnId) -> Vec<&'static str> {
    let events = entries.iter().filter(|entry| entry.turn == Some(turn)).map(|entry| match entry.event {
        Event::Prompted { .. } => "prompted",
        Event::Admitted => "admitted",
        Event::Started => "started",
        Event::Text(_) => "text",
        Event::Asked(_) => "asked",
        Event::Answered { .. } => "answered",
        Event::Called(_) => "called",
        Event::Parked(_) => "parked",
        Event::Returned { .. } => "returned",
        Event::Output(_) => "output",
        Event::Ended(_) => "ended",
        _ => "other",
    });
    events.collect()
}
