//! What an append of small pieces of text costs. Run it with `--release`.

use std::time::Instant;

use bytes::Bytes;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{AgentName, Dialect, Event, Frame, Principal, Seq, SessionId, Text, Timestamp, TurnId};
use gembridge_core::store::{Logs as _, SessionRecord, StoreError};
use gembridge_store::DiskStore;

const ENTRIES: u64 = 1_000_000;
const FRAME: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"0193","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"some sixty bytes of text, as a model streams it to its reader"}}}}"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    for batch in [1, 8, 64] {
        measure(batch).await?;
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "the numbers are for people")]
async fn measure(batch: u64) -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let store = DiskStore::open(folder.path())?;
    let record = record();
    let id = record.id;
    let mut writer = store.create(record).await?;
    let batches: Vec<Vec<_>> = (0..ENTRIES / batch).map(|number| entries(number * batch + 1, batch)).collect();
    let began = Instant::now();
    batches.iter().try_for_each(|entries| writer.append(entries))?;
    let each = began.elapsed().as_nanos() as f64 / ENTRIES as f64;
    writer.sync().await?;

    let began = Instant::now();
    let newest = store.turn_starts(id, 1).await?.pop().ok_or(StoreError::Unknown(id))?;
    store.read(id, newest.after, Seq(u64::MAX), 1).await?;
    let attach = began.elapsed();
    drop(writer);
    let began = Instant::now();
    store.reopen(id, 1).await?;
    let reopen = began.elapsed();
    println!(
        "batches of {batch:>2}: {each:.0} ns an entry; newest turn of {ENTRIES} entries {attach:?}; reopen {reopen:?}"
    );
    Ok(())
}

fn entries(first: u64, count: u64) -> Vec<LogEntry> {
    let start = FRAME.find("some").unwrap_or(0);
    let end = FRAME.len() - 5;
    let entry = |seq: u64| {
        let bytes = Bytes::from_static(FRAME.as_bytes());
        LogEntry {
            seq: Seq(seq),
            at: Timestamp(seq),
            turn: Some(TurnId(1 + seq / 1_000)),
            event: Event::Text(Text::escaped(bytes.slice(start..end))),
            frame: Some(Frame { dialect: Dialect::Acp, bytes }),
        }
    };
    (first..first + count).map(entry).collect()
}

fn record() -> SessionRecord {
    SessionRecord {
        id: SessionId::new(),
        principal: Principal::new("me"),
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
