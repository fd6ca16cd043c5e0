//! Writes to a store and says on standard output what was acknowledged, until it is killed. For tests only.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{
    AgentName, ClientId, Dialect, Event, Frame, Principal, Prompt, Seq, SessionId, Text, Timestamp, TurnId,
};
use gembridge_core::store::{LogWriter, Logs as _, Records as _, SessionRecord, StoreError};
use gembridge_store::{DiskOptions, DiskStore};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How long the store may take to notice that there is space again.
const HEALS_WITHIN: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let done = runtime.map_err(|error| error.to_string()).and_then(|runtime| match *arguments {
        ["write", folder] => runtime.block_on(write(Path::new(folder))),
        ["fill", folder, limit] => runtime.block_on(fill(Path::new(folder), limit)),
        _ => Err("usage: gembridge-store-torture write <folder> | fill <folder> <bytes>".to_owned()),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Appends, syncs and updates for ever.
async fn write(folder: &Path) -> Result<(), String> {
    let options = DiskOptions { segment_bytes: 64 << 10, chunk_bytes: 8 << 10, ..DiskOptions::default() };
    let store = DiskStore::open_with(folder, options).map_err(said)?;
    let mut session = Torture::open(&store).await.map_err(said)?;
    loop {
        let batch = 1 + session.next % 7;
        session.append(batch).map_err(said)?;
        if session.next.is_multiple_of(5) {
            session.writer.sync().await.map_err(said)?;
            say(&format!("synced {}", session.next - 1))?;
        }
        if session.next.is_multiple_of(11) {
            session.rename(&store).await.map_err(said)?;
        }
    }
}

/// Writes into a limit on the size of files, past it, and on when it is lifted.
async fn fill(folder: &Path, limit: &str) -> Result<(), String> {
    let limit = limit.parse().map_err(|error| format!("{error}"))?;
    let store = DiskStore::open(folder).map_err(said)?;
    let mut session = Torture::open(&store).await.map_err(said)?;
    set_file_limit(Some(limit))?;
    let mut refusals = 0;
    while refusals < 20 {
        if let Err(error) = session.append(1 + session.next % 7) {
            refusals += 1;
            say(&format!("refused {error:?}"))?;
        }
    }
    refusals = 0;
    while refusals < 5 {
        if let Err(error) = session.rename(&store).await {
            refusals += 1;
            say(&format!("kept {error:?}"))?;
        }
    }
    set_file_limit(None)?;
    say("space")?;
    let deadline = Instant::now() + HEALS_WITHIN;
    while session.append(1).is_err() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    for _ in 0..50 {
        session.append(3).map_err(said)?;
        session.rename(&store).await.map_err(said)?;
    }
    session.writer.sync().await.map_err(said)?;
    say("done")
}

fn set_file_limit(bytes: Option<u64>) -> Result<(), String> {
    let maximum = getrlimit(Resource::Fsize).maximum;
    let current = bytes.or(maximum);
    setrlimit(Resource::Fsize, Rlimit { current, maximum }).map_err(|error| error.to_string())
}

struct Torture {
    writer: Box<dyn LogWriter>,
    record: SessionRecord,
    next: u64,
}

impl Torture {
    async fn open(store: &DiskStore) -> Result<Self, StoreError> {
        let Some(record) = store.list(None, 1).await?.pop() else {
            let record = new_record();
            let writer = store.create(record.clone()).await?;
            return Ok(Self { writer, record, next: 1 });
        };
        let reopened = store.reopen(record.id, 1).await?;
        Ok(Self { writer: reopened.writer, record, next: reopened.last.0 + 1 })
    }

    fn append(&mut self, count: u64) -> Result<(), StoreError> {
        let entries: Vec<_> = (self.next..self.next + count).map(entry).collect();
        self.writer.append(&entries)?;
        self.next += count;
        say(&format!("entry {}", self.next - 1)).map_err(StoreError::Io)
    }

    async fn rename(&mut self, store: &DiskStore) -> Result<(), StoreError> {
        let mut record = self.record.clone();
        record.updated = Timestamp(record.updated.0 + 1);
        store.update(record.clone()).await?;
        self.record = record;
        say(&format!("record {}", self.record.updated.0)).map_err(StoreError::Io)
    }
}

/// Entry `seq` is the same in every run, so that a reader knows what must be there.
fn entry(seq: u64) -> LogEntry {
    let turn = TurnId(1 + (seq - 1) / 10);
    let (seq, at) = (Seq(seq), Timestamp(seq));
    if (seq.0 - 1).is_multiple_of(10) {
        let prompt = Prompt::text(format!("question {}", turn.0));
        let event = Event::Prompted { prompt, by: ClientId(1) };
        return LogEntry { seq, at, turn: Some(turn), event, frame: None };
    }
    let text = format!("{} {}", seq.0, "x".repeat(usize::try_from(seq.0 % 500).unwrap_or(0)));
    let bytes = Bytes::from(format!("{{\"text\":\"{text}\"}}"));
    let event = Event::Text(Text::escaped(bytes.slice(9..9 + text.len())));
    let frame = Some(Frame { dialect: Dialect::Acp, bytes });
    LogEntry { seq, at, turn: Some(turn), event, frame }
}

fn new_record() -> SessionRecord {
    SessionRecord {
        id: SessionId::new(),
        principal: Principal::new("torture"),
        agent: AgentName::new("demo"),
        agent_session: None,
        workspace: None,
        model: None,
        mode: None,
        title: None,
        created: Timestamp(0),
        updated: Timestamp(0),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to `map_err`")]
fn said(error: StoreError) -> String {
    error.to_string()
}

/// One line, at once: what was said is what the test holds us to.
fn say(line: &str) -> Result<(), String> {
    writeln!(io::stdout().lock(), "{line}").map_err(|error| error.to_string())
}
