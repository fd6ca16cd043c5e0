//! What a state folder with many sessions costs: until a gateway listens, until the newest are listed, and to take up an
//! old one.

use std::time::Instant;

use bytes::Bytes;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{
    AgentName, ClientId, Content, Event, Outcome, Principal, Prompt, Seq, SessionId, Stop, Text, Timestamp, TurnId,
};
use gembridge_core::store::{Logs as _, Records as _, SessionRecord};
use gembridge_store::DiskStore;
use tempfile::TempDir;

use crate::args::Args;
use crate::gateway::{CONFIG, Gateway};
use crate::measure::{load_average, millis};
use crate::report::{Bar, Report, Series};

pub const NAME: &str = "state-folder";
pub const ABOUT: &str =
    "a state folder of 10³ to 10⁵ sessions: opened, listed, an old session taken up, the gateway started";

const COUNTS: [u32; 3] = [1_000, 10_000, 100_000];
/// As many as the chat page asks for.
const LISTED: usize = 200;

pub fn run(args: &Args) -> anyhow::Result<Report> {
    let mut report = Report::new(NAME, ABOUT);
    for count in COUNTS {
        let folder = tempfile::tempdir()?;
        let oldest = super::runtime()?.block_on(fill(&folder, count))?;
        let series = |what: &str| Series::new(format!("{count} sessions: {what}"), "ms");
        let (mut open, mut list, mut take_up) = (series("opened"), series("newest listed"), series("oldest taken up"));
        for _ in 0..args.rounds {
            super::runtime()?.block_on(async {
                let began = Instant::now();
                let store = DiskStore::open(sessions(&folder))?;
                open.push(millis(began.elapsed()));
                let began = Instant::now();
                let listed = store.list(None, LISTED).await?;
                list.push(millis(began.elapsed()));
                anyhow::ensure!(listed.len() == LISTED, "{} are listed", listed.len());
                let began = Instant::now();
                let reopened = store.reopen(oldest, 16).await?;
                take_up.push(millis(began.elapsed()));
                anyhow::ensure!(reopened.last == Seq(ENTRIES), "the log ends at {:?}", reopened.last);
                anyhow::Ok(())
            })?;
        }
        let mut listens = series("the gateway listens");
        let mut folder = folder;
        for _ in 0..args.rounds {
            let began = Instant::now();
            let gateway = Gateway::start_with(folder, CONFIG, &[])?;
            listens.push(millis(began.elapsed()));
            folder = gateway.stop()?;
        }
        report.show_all([&open, &list, &take_up, &listens]);
        let is_largest = count == COUNTS[COUNTS.len() - 1];
        let gate = |limit| is_largest.then_some(Bar::gate_at_most(limit));
        report.typical(format!("{count} sessions: opened"), &open, gate(1_000.0));
        report.typical(format!("{count} sessions: newest {LISTED} listed"), &list, gate(50.0));
    }
    report.note("each session has one turn of six entries; the files are in the page cache");
    report.note(format!("load average at the end: {}", load_average()));
    Ok(report)
}

fn sessions(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("state/gembridge/sessions")
}

/// Entries of each session's log.
const ENTRIES: u64 = 6;

/// Writes so many sessions, and gives the first.
async fn fill(folder: &TempDir, count: u32) -> anyhow::Result<SessionId> {
    std::fs::create_dir_all(sessions(folder))?;
    let store = DiskStore::open(sessions(folder))?;
    let mut first = None;
    for number in 0..count {
        let record = record(number);
        first.get_or_insert(record.id);
        let mut writer = store.create(record).await?;
        writer.append(&entries())?;
    }
    first.ok_or_else(|| anyhow::anyhow!("no session was written"))
}

fn record(number: u32) -> SessionRecord {
    let now = Timestamp::now();
    SessionRecord {
        id: SessionId::new(),
        principal: Principal::new("someone"),
        agent: AgentName::new("demo"),
        agent_session: Some(format!("demo-{number}").into()),
        workspace: None,
        model: None,
        mode: None,
        title: Some(format!("conversation {number} about nothing in particular").into()),
        created: now,
        updated: now,
    }
}

fn entries() -> Vec<LogEntry> {
    let prompt = Prompt::new(vec![Content::text("a question of some length, as people ask them every day")]);
    let piece = || {
        Event::Text(Text::escaped(Bytes::from_static(b"some sixty bytes of text, as a model streams it to a reader. ")))
    };
    let events = [
        Event::Prompted { prompt, by: ClientId::fresh() },
        Event::Started,
        piece(),
        piece(),
        piece(),
        Event::Ended(Outcome::Finished(Stop::EndTurn)),
    ];
    let at = Timestamp::now();
    let entry = |(number, event)| LogEntry { seq: Seq(number), at, turn: Some(TurnId(1)), event, frame: None };
    (1..).zip(events).map(entry).collect()
}
