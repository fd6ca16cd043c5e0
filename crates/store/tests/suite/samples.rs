//! Entries and records to store, and the back ends to store them in.

use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{
    AgentName, ClientId, Dialect, Event, Frame, Outcome, Principal, Prompt, Seq, SessionId, Stop, Text, Timestamp,
    TurnId,
};
use gembridge_core::store::MemoryStore;
use gembridge_core::store::{SessionRecord, Store};
use gembridge_store::{DiskOptions, DiskStore};
use tempfile::TempDir;

/// Small enough that a few dozen entries fill several segments, and written by system calls.
pub const SMALL: DiskOptions = DiskOptions { segment_bytes: 2_000, chunk_bytes: 500, may_map: false };

pub enum Backend {
    Memory(MemoryStore),
    Disk { store: Option<DiskStore>, folder: TempDir, options: DiskOptions },
}

impl Backend {
    pub fn memory() -> Self {
        Self::Memory(MemoryStore::new())
    }

    pub fn disk(options: DiskOptions) -> Self {
        let folder = TempDir::new().unwrap();
        let store = Some(DiskStore::open_with(folder.path(), options).unwrap());
        Self::Disk { store, folder, options }
    }

    pub fn store(&self) -> &dyn Store {
        match self {
            Self::Memory(store) => store,
            Self::Disk { store, .. } => store.as_ref().unwrap(),
        }
    }

    /// What is left after the process ended and another began. Nothing for memory, which has one life.
    pub fn restart(&mut self) {
        if let Self::Disk { store, folder, options } = self {
            *store = None;
            *store = Some(DiskStore::open_with(folder.path(), *options).unwrap());
        }
    }
}

pub fn record(principal: &str, updated: u64) -> SessionRecord {
    SessionRecord {
        id: SessionId::new(),
        principal: Principal::new(principal),
        agent: AgentName::new("demo"),
        agent_session: Some("agent-7".into()),
        workspace: Some("/some/where".into()),
        model: None,
        mode: Some("default".into()),
        title: Some("títle 題 😀".into()),
        created: Timestamp(1_000),
        updated: Timestamp(updated),
    }
}

pub fn entry(seq: u64, turn: Option<u64>, event: Event) -> LogEntry {
    LogEntry { seq: Seq(seq), at: Timestamp(seq * 10), turn: turn.map(TurnId), event, frame: None }
}

/// A piece of answer as an agent sends it: the text is a slice of the frame.
pub fn spoken(seq: u64, turn: u64, escaped: &str) -> LogEntry {
    let before = r#"{"jsonrpc":"2.0","params":{"text":""#;
    let bytes = Bytes::from(format!("{before}{escaped}\"}}}}"));
    let text = Text::escaped(bytes.slice(before.len()..before.len() + escaped.len()));
    let frame = Some(Frame { dialect: Dialect::Acp, bytes });
    LogEntry { frame, ..entry(seq, Some(turn), Event::Text(text)) }
}

pub fn prompted(seq: u64, turn: u64) -> LogEntry {
    let prompt = Prompt::text(format!("question {turn}"));
    entry(seq, Some(turn), Event::Prompted { prompt, by: ClientId(1) })
}

/// A turn of six entries: turn 1 has the entries 1 to 6, and so on.
pub fn turn(number: u64) -> Vec<LogEntry> {
    let first = (number - 1) * 6 + 1;
    vec![
        prompted(first, number),
        entry(first + 1, Some(number), Event::Started),
        spoken(first + 2, number, r"hello \u4e16\n"),
        spoken(first + 3, number, "and some more text to fill the line with"),
        entry(first + 4, None, Event::Title(Arc::from("a title"))),
        entry(first + 5, Some(number), Event::Ended(Outcome::Finished(Stop::EndTurn))),
    ]
}

pub fn turns(range: std::ops::RangeInclusive<u64>) -> Vec<LogEntry> {
    range.flat_map(turn).collect()
}
