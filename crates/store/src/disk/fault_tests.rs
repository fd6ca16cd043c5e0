//! The disk fails at every call in turn: nothing is acknowledged that is not there, and all goes on afterwards.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use gembridge_core::log::LogEntry;
use gembridge_core::model::{AgentName, ClientId, Event, Principal, Prompt, Seq, SessionId, Text, Timestamp, TurnId};
use gembridge_core::store::{SessionRecord, Store as _, StoreError};
use rustix::io::Errno;
use tempfile::TempDir;

use super::files::{Files, RealFiles};
use super::{DiskOptions, DiskStore};

const SMALL: DiskOptions = DiskOptions { segment_bytes: 1_500, signpost_bytes: 300 };

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Writing, and making files, fails half way through.
    NoSpace,
    /// Syncing fails, and what was dirty is forgotten without another word, as Linux does.
    SyncLost,
}

/// A disk that fails for a while, and that knows which bytes would survive a power cut.
struct FaultyFiles {
    fault: Fault,
    /// The first call of the kind that fails, from 1, and how many fail in a row.
    window: std::ops::Range<u32>,
    state: Mutex<DiskState>,
}

#[derive(Default)]
struct DiskState {
    calls: u32,
    bytes: HashMap<u64, Vec<Kept>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Lost,
    Dirty,
    Durable,
}

impl FaultyFiles {
    fn new(fault: Fault, first: u32, length: u32) -> Arc<Self> {
        let window = first..first + length;
        Arc::new(Self { fault, window, state: Mutex::default() })
    }

    fn fails(&self, fault: Fault) -> bool {
        if self.fault != fault {
            return false;
        }
        let mut state = self.state.lock().unwrap();
        state.calls += 1;
        self.window.contains(&state.calls)
    }

    fn mark(&self, file: &File, change: impl FnOnce(&mut Vec<Kept>)) {
        change(self.state.lock().unwrap().bytes.entry(file.metadata().unwrap().ino()).or_default());
    }

    fn was_reached(&self) -> bool {
        self.state.lock().unwrap().calls >= self.window.start
    }

    fn all_is_durable(&self, path: &Path) -> bool {
        let metadata = fs::metadata(path).unwrap();
        let state = self.state.lock().unwrap();
        let kept = &state.bytes[&metadata.ino()];
        kept.len() as u64 == metadata.len() && kept.iter().all(|kept| *kept == Kept::Durable)
    }
}

impl Files for FaultyFiles {
    fn create(&self, path: &Path) -> io::Result<File> {
        if self.fails(Fault::NoSpace) {
            return Err(Errno::NOSPC.into());
        }
        RealFiles.create(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        if self.fails(Fault::NoSpace) {
            return Err(Errno::DQUOT.into());
        }
        RealFiles.create_dir(path)
    }

    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let failing = self.fails(Fault::NoSpace);
        let written = if failing { bytes.len() / 2 } else { bytes.len() };
        let written = RealFiles.write_at(file, &bytes[..written], offset)?;
        self.mark(file, |kept| {
            let start = usize::try_from(offset).unwrap();
            kept.resize(kept.len().max(start + written), Kept::Lost);
            kept[start..start + written].fill(Kept::Dirty);
        });
        // Half of it is there and nobody says so: the worst that a failed write can leave behind.
        if failing { Err(Errno::NOSPC.into()) } else { Ok(written) }
    }

    fn truncate(&self, file: &File, len: u64) -> io::Result<()> {
        if self.fails(Fault::NoSpace) {
            return Err(Errno::IO.into());
        }
        self.mark(file, |kept| kept.truncate(usize::try_from(len).unwrap()));
        RealFiles.truncate(file, len)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        let failing = self.fails(Fault::SyncLost);
        let becomes = if failing { Kept::Lost } else { Kept::Durable };
        self.mark(file, |kept| {
            kept.iter_mut().filter(|kept| **kept == Kept::Dirty).for_each(|kept| *kept = becomes);
        });
        if failing { Err(Errno::IO.into()) } else { Ok(()) }
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        if self.fails(Fault::SyncLost) { Err(Errno::IO.into()) } else { Ok(()) }
    }
}

fn turn(number: u64) -> Vec<LogEntry> {
    let entry = |seq: u64, event: Event| LogEntry {
        seq: Seq(seq),
        at: Timestamp(seq),
        turn: Some(TurnId(number)),
        event,
        frame: None,
    };
    let first = number * 3 - 2;
    let prompt = Prompt::text(format!("question {number}"));
    vec![
        entry(first, Event::Prompted { prompt, by: ClientId(1) }),
        entry(first + 1, Event::Text(Text::plain(format!("answer {number}")))),
        entry(first + 2, Event::Started),
    ]
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

fn log_files(folder: &Path, id: SessionId) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder.join("sessions").join(id.to_string())).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|kind| kind == "log")).collect()
}

/// Writes 130 turns through the fault and checks every acknowledgement; gives how many calls were refused.
async fn write_through(files: &Arc<FaultyFiles>) -> usize {
    let folder = TempDir::new().unwrap();
    let disk: Arc<dyn Files> = Arc::clone(files) as _;
    let store = DiskStore::open_on(folder.path().to_owned(), SMALL, disk).unwrap();
    let record = record();
    let id = record.id;
    let mut writer = store.create(record).await.unwrap();
    let mut expected = Vec::new();
    let mut refused = 0;
    for number in 1..=130 {
        let batch = turn(number);
        while let Err(error) = writer.append(&batch) {
            refused += 1;
            assert!(matches!(error, StoreError::Full | StoreError::Io(_)), "{error}");
            let seen = store.read(id, Seq::START, Seq(u64::MAX), usize::MAX).await.unwrap();
            assert_eq!(seen, expected);
        }
        expected.extend(batch);
        if number % 2 == 0 {
            while let Err(error) = writer.sync().await {
                refused += 1;
                assert!(matches!(error, StoreError::Io(_)), "{error}");
            }
            for path in log_files(folder.path(), id) {
                assert!(files.all_is_durable(&path), "{} is not durable", path.display());
            }
        }
    }
    assert_eq!(store.turn_starts(id, 200).await.unwrap().len(), 130);
    drop(writer);
    drop(store);
    let store = DiskStore::open_with(folder.path(), SMALL).unwrap();
    let reopened = store.reopen(id, usize::MAX).await.unwrap();
    assert_eq!(reopened.tail, expected);
    assert_eq!(store.turn_starts(id, 200).await.unwrap().len(), 130);
    refused
}

#[tokio::test]
async fn r16_a_write_that_finds_no_space_at_any_call_is_refused_and_done_again_later() {
    let mut refused = 0;
    for first in 1..=200 {
        let files = FaultyFiles::new(Fault::NoSpace, first, 1 + first % 5);
        refused += write_through(&files).await;
        assert!(files.was_reached());
    }
    assert!(refused > 100);
}

#[tokio::test]
async fn r16_a_sync_that_fails_at_any_call_is_never_acknowledged_before_the_bytes_are_safe() {
    let mut refused = 0;
    for first in 1..=200 {
        let files = FaultyFiles::new(Fault::SyncLost, first, 1 + first % 3);
        refused += write_through(&files).await;
    }
    assert!(refused > 100);
}

#[tokio::test]
async fn a_log_that_was_left_by_a_failing_disk_can_be_read_without_its_writer() {
    let folder = TempDir::new().unwrap();
    let files = FaultyFiles::new(Fault::NoSpace, 4, u32::MAX - 4);
    let store = DiskStore::open_on(folder.path().to_owned(), SMALL, files).unwrap();
    let record = record();
    let id = record.id;
    let mut writer = store.create(record).await.unwrap();
    writer.append(&turn(1)).unwrap();
    for _ in 0..3 {
        assert!(writer.append(&turn(2)).is_err());
    }
    drop(writer);
    assert_eq!(store.read(id, Seq::START, Seq(u64::MAX), 99).await.unwrap(), turn(1));
}

#[tokio::test]
async fn a_refused_batch_leaves_no_byte_behind_at_once_or_before_the_next() {
    let folder = TempDir::new().unwrap();
    // The fourth call is the second write; the fifth is the first attempt to clean up after it.
    for (failing, cleaned_at_once) in [(1, true), (2, false)] {
        let files = FaultyFiles::new(Fault::NoSpace, 4, failing);
        let state = folder.path().join(failing.to_string());
        let store = DiskStore::open_on(state.clone(), SMALL, files).unwrap();
        let record = record();
        let id = record.id;
        let mut writer = store.create(record).await.unwrap();
        writer.append(&turn(1)).unwrap();
        let segment = log_files(&state, id).pop().unwrap();
        let before = fs::read(&segment).unwrap();

        assert_eq!(writer.append(&turn(2)), Err(StoreError::Full));
        assert_eq!(fs::read(&segment).unwrap() == before, cleaned_at_once);
        let shorter = &turn(2)[..1];
        writer.append(shorter).unwrap();
        let mut expected = before;
        super::record::encode(&shorter[0], super::record::InBatch::Last, &mut expected).unwrap();
        assert_eq!(fs::read(&segment).unwrap(), expected);
    }
}
