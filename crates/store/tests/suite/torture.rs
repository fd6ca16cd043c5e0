//! A process that writes, and what is left when it is killed or runs out of space.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use gembridge_core::model::{Event, Seq, TurnId};
use gembridge_core::store::{Logs as _, Records as _};
use gembridge_store::DiskStore;
use tempfile::TempDir;

/// What the child said that it had stored.
#[derive(Clone, Copy, Debug, Default)]
struct Acknowledged {
    entry: u64,
    record: u64,
}

impl Acknowledged {
    fn hear(&mut self, line: &str) {
        match line.split_once(' ') {
            Some(("entry", number)) => self.entry = number.parse().unwrap(),
            Some(("record", number)) => self.record = number.parse().unwrap(),
            _ => {}
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the test must have a process of its own to kill")]
fn torture(arguments: &[&str]) -> (Child, BufReader<ChildStdout>) {
    // A signal that is ignored stays ignored in the program that the shell becomes.
    let mut child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_gembridge-store-torture")])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

/// Checks that the store has everything that was acknowledged, in order, and gives what it has.
async fn check(folder: &Path, acknowledged: Acknowledged) -> Acknowledged {
    let database = rusqlite::Connection::open(folder.join("gembridge.db")).unwrap();
    let verdict: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    database.close().unwrap();

    let store = DiskStore::open(folder).unwrap();
    let Some(record) = store.list(None, 1).await.unwrap().pop() else {
        assert_eq!((acknowledged.entry, acknowledged.record), (0, 0));
        return acknowledged;
    };
    assert!(record.updated.0 >= acknowledged.record, "{record:?} {acknowledged:?}");
    let before = store.read(record.id, Seq::START, Seq(u64::MAX), usize::MAX).await.unwrap();
    let reopened = store.reopen(record.id, usize::MAX).await.unwrap();
    assert!(before == reopened.tail, "reading and reopening disagree");
    assert!(reopened.last.0 >= acknowledged.entry, "{:?} {acknowledged:?}", reopened.last);
    assert_eq!(reopened.tail.len() as u64, reopened.last.0);
    for (entry, seq) in reopened.tail.iter().zip(1_u64..) {
        assert_eq!(entry.seq, Seq(seq));
        match &entry.event {
            Event::Prompted { prompt, .. } => {
                assert_eq!(prompt.plain_text(), format!("question {}", 1 + seq / 10));
            }
            Event::Text(text) => {
                let text = text.to_str().into_owned();
                let (number, filling) = text.split_once(' ').unwrap();
                assert_eq!((number, filling.len() as u64), (&*seq.to_string(), seq % 500));
            }
            other => panic!("never written: {other:?}"),
        }
    }
    let turns = reopened.last.0.div_ceil(10);
    let starts = store.turn_starts(record.id, usize::MAX).await.unwrap();
    assert_eq!(starts.len() as u64, turns);
    for (start, turn) in starts.iter().zip(1..) {
        assert_eq!((start.turn, start.after), (TurnId(turn), Seq((turn - 1) * 10)));
    }
    Acknowledged { entry: reopened.last.0, record: record.updated.0 }
}

#[tokio::test]
async fn r14_everything_acknowledged_survives_kill_9_at_any_moment() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut seed = 0x5eed_u64;
    let mut stored = Acknowledged::default();
    for _ in 0..25 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let moment = (seed >> 33) % 300;
        let (mut child, output) = torture(&["write", path]);
        let mut acknowledged = stored;
        let mut lines = output.lines();
        for line in lines.by_ref().take(usize::try_from(moment).unwrap()) {
            acknowledged.hear(&line.unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it said before it died counts, but for half a line.
        let mut rest = String::new();
        for line in lines.map_while(Result::ok) {
            acknowledged.hear(&std::mem::replace(&mut rest, line));
        }
        stored = check(folder.path(), acknowledged).await;
    }
    assert!(stored.entry > 500, "the child hardly wrote anything: {stored:?}");
    assert!(stored.record > 5, "the child hardly updated anything: {stored:?}");
}

#[tokio::test]
async fn r16_a_full_disk_refuses_in_words_and_loses_nothing_and_space_heals_it() {
    for limit in [40_000, 65_536, 100_001, 150_000] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().to_str().unwrap();
        let (mut child, mut output) = torture(&["fill", path, &limit.to_string()]);
        let mut said = String::new();
        output.read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{said}");

        let refusals: Vec<_> = said.lines().filter(|line| line.starts_with("refused")).collect();
        // A limit on files is a full disk to the journal, and a failing one to SQLite.
        assert!(refusals.iter().all(|line| *line == "refused Full" || line.starts_with("refused Io(")), "{refusals:?}");
        assert_eq!(refusals.len(), 20);
        assert_eq!(said.lines().filter(|line| line.starts_with("kept")).count(), 5, "{said}");
        let (_, healed) = said.split_once("space\n").unwrap();
        assert!(healed.ends_with("done\n"), "{said}");

        let mut acknowledged = Acknowledged::default();
        said.lines().for_each(|line| acknowledged.hear(line));
        let stored = check(folder.path(), acknowledged).await;
        assert_eq!(stored.entry, acknowledged.entry);
        assert_eq!(stored.record, acknowledged.record);
    }
}
