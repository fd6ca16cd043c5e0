//! What the state folder holds, read through the store itself.

use std::path::Path;

use gembridge_core::log::LogEntry;
use gembridge_core::model::{Event, Outcome, Seq, SessionId};
use gembridge_core::store::{Logs as _, Records as _, SessionRecord};
use gembridge_store::DiskStore;

/// The logs of all sessions in a state folder, with their records.
pub fn sessions(state: &Path) -> Vec<(SessionRecord, Vec<LogEntry>)> {
    let event_loop = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    event_loop.block_on(async {
        let store = DiskStore::open(state.join("sessions")).unwrap();
        let mut found = Vec::new();
        for record in store.list(None, 1000).await.unwrap() {
            let entries = store.read(record.id, Seq::START, Seq(u64::MAX), 1_000_000).await.unwrap();
            found.push((record, entries));
        }
        found
    })
}

pub fn session(state: &Path, id: &str) -> Vec<LogEntry> {
    let id: SessionId = id.parse().unwrap();
    sessions(state).into_iter().find(|(record, _)| record.id == id).expect("the session is not kept").1
}

/// The logs of these sessions, in their order.
pub fn logs(state: &Path, ids: &[String]) -> Vec<Vec<LogEntry>> {
    let event_loop = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    event_loop.block_on(async {
        let store = DiskStore::open(state.join("sessions")).unwrap();
        let mut logs = Vec::new();
        for id in ids {
            logs.push(store.read(id.parse().unwrap(), Seq::START, Seq(u64::MAX), 1_000_000).await.unwrap());
        }
        logs
    })
}

/// The answers, one after the other.
pub fn text(entries: &[LogEntry]) -> String {
    let texts = entries.iter().filter_map(|entry| match &entry.event {
        Event::Text(text) => Some(text.to_str().into_owned()),
        _ => None,
    });
    texts.collect()
}

/// How each turn ended, in their order. Every turn that was begun has exactly one end.
#[track_caller]
pub fn outcomes(entries: &[LogEntry]) -> Vec<Outcome> {
    let turns = entries.iter().filter(|entry| matches!(entry.event, Event::Prompted { .. })).map(|entry| entry.turn);
    let ended: Vec<_> = turns
        .map(|turn| {
            let mut ends = entries.iter().filter(|entry| entry.turn == turn).filter_map(|entry| match &entry.event {
                Event::Ended(outcome) => Some(outcome.clone()),
                _ => None,
            });
            let end = ends.next().unwrap_or_else(|| panic!("turn {turn:?} has no end: {entries:?}"));
            assert_eq!(ends.next(), None, "turn {turn:?} ended twice");
            end
        })
        .collect();
    assert!(!ended.is_empty(), "no turn was begun");
    ended
}

/// Numbered without a gap, and no time before the one above it.
#[track_caller]
pub fn is_in_order(entries: &[LogEntry]) {
    let numbers: Vec<u64> = entries.iter().map(|entry| entry.seq.0).collect();
    assert_eq!(numbers, (1..=entries.len() as u64).collect::<Vec<_>>());
    assert!(entries.is_sorted_by_key(|entry| entry.at), "{entries:?}");
}

#[track_caller]
pub fn database_is_sound(state: &Path) {
    let database = rusqlite::Connection::open(state.join("sessions/gembridge.db")).unwrap();
    let told: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(told, "ok");
}
