//! The disk fails at every call in turn: nothing is acknowledged that is not there, and all goes on afterwards.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use gembridge_core::log::LogEntry;
use gembridge_core::model::{AgentName, ClientId, Event, Principal, Prompt, Seq, SessionId, Text, Timestamp, TurnId};
use gembridge_core::store::{Logs as _, Records as _, SessionRecord, StoreError};
use rustix::io::Errno;
use tempfile::TempDir;

use super::files::{Files, RealFiles};
use super::frame::{self, Kind};
use super::journal::{Journal, Room};
use super::record;
use super::records::Change;
use super::segment::Medium;
use super::{DiskOptions, DiskStore};

/// Several segments in a test.
const SMALL: DiskOptions = DiskOptions { segment_bytes: 3_000, chunk_bytes: 300, may_map: false };
/// One segment in a test, written by memory.
const MAPPED: DiskOptions = DiskOptions { segment_bytes: 1 << 20, chunk_bytes: 300, may_map: true };

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

    fn all_is_durable(&self) -> bool {
        let state = self.state.lock().unwrap();
        state.bytes.values().flatten().all(|kept| *kept == Kept::Durable)
    }
}

impl Files for FaultyFiles {
    fn create(&self, path: &Path) -> io::Result<File> {
        if self.fails(Fault::NoSpace) {
            return Err(Errno::NOSPC.into());
        }
        RealFiles.create(path)
    }

    fn allocate(&self, file: &File, len: u64) -> io::Result<()> {
        if self.fails(Fault::NoSpace) {
            return Err(Errno::DQUOT.into());
        }
        RealFiles.allocate(file, len)
    }

    fn write(&self, file: &File, medium: &mut Medium, bytes: &[u8], offset: u64) -> io::Result<()> {
        // Memory has no way to refuse: its blocks are there.
        let failing = matches!(medium, Medium::Written) && self.fails(Fault::NoSpace);
        if failing {
            // All but what makes it a frame is there: the worst that a failed write can leave behind.
            RealFiles.write(file, medium, &bytes[8..], offset + 8)?;
            return Err(Errno::NOSPC.into());
        }
        RealFiles.write(file, medium, bytes, offset)?;
        self.mark(file, |kept| {
            let start = usize::try_from(offset).unwrap();
            // Whether what ends the last frame is durable does not matter. What is written again has no such end.
            let is_again = offset == 0 && bytes.len() > 36;
            let end = start + bytes.len() - if is_again { 0 } else { frame::TERMINATOR.len() };
            kept.resize(kept.len().max(end), Kept::Durable);
            kept[start..end].fill(Kept::Dirty);
        });
        Ok(())
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

/// A folder whose database commits without waiting for a disk, where the machine has one.
fn in_memory() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

/// Writes 200 turns through the fault and checks every acknowledgement; gives how many calls were refused.
async fn write_through(files: &Arc<FaultyFiles>, options: DiskOptions) -> usize {
    let folder = in_memory();
    let disk: Arc<dyn Files> = Arc::clone(files) as _;
    let store = DiskStore::open_on(folder.path().to_owned(), options, disk).unwrap();
    let mut refused = 0;
    let (id, mut writer) = loop {
        let record = record();
        match store.create(record.clone()).await {
            Ok(writer) => break (record.id, writer),
            Err(_) => refused += 1,
        }
    };
    let mut expected = Vec::new();
    for number in 1..=200 {
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
            // What left the journal for the database was synced there.
            assert!(options == SMALL || files.all_is_durable(), "acknowledged before it was durable");
        }
    }
    assert_eq!(store.turn_starts(id, 300).await.unwrap().len(), 200);
    drop(writer);
    drop(store);
    let store = DiskStore::open_with(folder.path(), options).unwrap();
    let reopened = store.reopen(id, usize::MAX).await.unwrap();
    assert_eq!(reopened.tail, expected);
    assert_eq!(store.turn_starts(id, 300).await.unwrap().len(), 200);
    refused
}

#[tokio::test]
async fn r16_a_write_that_finds_no_space_at_any_call_is_refused_and_done_again_later() {
    let mut refused = 0;
    for first in 1..=200 {
        let files = FaultyFiles::new(Fault::NoSpace, first, 1 + first % 5);
        refused += write_through(&files, SMALL).await;
        assert!(files.was_reached());
    }
    assert!(refused > 100);
}

#[tokio::test]
async fn r16_a_sync_that_fails_at_any_call_is_never_acknowledged_before_the_bytes_are_safe() {
    let mut refused = 0;
    for first in 1..=200 {
        let options = if first % 4 == 0 { SMALL } else { MAPPED };
        let files = FaultyFiles::new(Fault::SyncLost, first, 1 + first % 3);
        refused += write_through(&files, options).await;
    }
    assert!(refused > 100);
}

#[tokio::test]
async fn a_log_that_was_left_by_a_failing_disk_can_be_read_without_its_writer() {
    let folder = TempDir::new().unwrap();
    // Making a file, its room, its header, the record and the first turn go well.
    let files = FaultyFiles::new(Fault::NoSpace, 6, u32::MAX - 6);
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

/// Frames of two sessions in three segments, of which the second lost its end in a power cut.
#[tokio::test]
async fn a_power_cut_that_kept_a_later_segment_but_not_the_end_of_an_earlier_one_leaves_no_gap() {
    let folder = TempDir::new().unwrap();
    drop(DiskStore::open_with(folder.path(), SMALL).unwrap());
    let (journal, _) = Journal::open(folder.path().join("journal"), SMALL, Arc::new(RealFiles)).unwrap();
    let records = [record(), record()];
    let mut torn = None;
    for record in &records {
        let mut buffer = Vec::new();
        Change::Created(record.clone()).encode(record.id, &mut buffer).unwrap();
        journal.append(&mut buffer, Room::Usual, |_, _| {}).unwrap();
    }
    for number in 1..=12 {
        for session in &records {
            let mut buffer = Vec::new();
            frame::begin(&mut buffer);
            for entry in &turn(number) {
                record::encode(entry, &mut buffer).unwrap();
            }
            frame::finish(&mut buffer, Kind::Entries, session.id).unwrap();
            let kept = |segment: &Arc<super::segment::Segment>, offset| {
                if segment.number == 2 {
                    torn = Some((segment.path.clone(), offset));
                }
            };
            journal.append(&mut buffer, Room::Usual, kept).unwrap();
        }
    }
    drop(journal);
    let (path, last_frame) = torn.unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[usize::try_from(last_frame).unwrap() + 40] ^= 1;
    fs::write(&path, bytes).unwrap();

    let store = DiskStore::open_with(folder.path(), SMALL).unwrap();
    let mut kept = Vec::new();
    for session in &records {
        let entries = store.read(session.id, Seq::START, Seq(u64::MAX), 999).await.unwrap();
        let turns = entries.len() as u64 / 3;
        assert_eq!(entries, (1..=turns).flat_map(turn).collect::<Vec<_>>());
        kept.push(turns);
    }
    kept.sort_unstable();
    assert!(kept[0] < 12, "one of them lost a batch: {kept:?}");
    assert_eq!(kept[1], 12, "the other did not: {kept:?}");
}

/// Whoever had the session open may write after it was deleted; the process may be killed right then.
#[tokio::test]
async fn r14_a_deleted_session_is_not_brought_back_by_what_was_noted_of_it_since() {
    let folder = TempDir::new().unwrap();
    let (gone, left) = (record(), record());
    {
        let store = DiskStore::open_with(folder.path(), MAPPED).unwrap();
        drop(store.create(gone.clone()).await.unwrap());
    }
    let (journal, _) = Journal::open(folder.path().join("journal"), MAPPED, Arc::new(RealFiles)).unwrap();
    journal.begin_after(1);
    let updated = SessionRecord { updated: Timestamp(7), ..left.clone() };
    let changes = [
        (gone.id, Change::Deleted),
        (gone.id, Change::Updated(gone.clone())),
        (left.id, Change::Created(left.clone())),
        (left.id, Change::Updated(updated.clone())),
    ];
    for (id, change) in changes {
        let mut buffer = Vec::new();
        change.encode(id, &mut buffer).unwrap();
        journal.append(&mut buffer, Room::Usual, |_, _| {}).unwrap();
    }
    drop(journal);
    let store = DiskStore::open_with(folder.path(), MAPPED).unwrap();
    assert_eq!(store.list(None, 9).await.unwrap(), [updated]);
    assert_eq!(store.record(gone.id).await, Err(StoreError::Unknown(gone.id)));

    let writer = store.reopen(left.id, 0).await.unwrap().writer;
    store.delete(left.id).await.unwrap();
    store.list(None, 9).await.unwrap();
    // As it is when the deletion comes between the look at the session and the note.
    store.disk.change(left.id, Change::Updated(left.clone())).unwrap();
    assert_eq!(store.record(left.id).await, Err(StoreError::Unknown(left.id)));
    drop(writer);
    assert_eq!(store.list(None, 9).await.unwrap(), []);
}

/// The end of a segment is kept for what makes room.
#[tokio::test]
async fn r16_a_session_can_be_deleted_when_nothing_more_can_be_written() {
    let folder = TempDir::new().unwrap();
    // Making the first segment takes three calls; there is no room for another.
    let files = FaultyFiles::new(Fault::NoSpace, 4, u32::MAX - 4);
    let options = DiskOptions { segment_bytes: 16 << 10, ..MAPPED };
    let store = DiskStore::open_on(folder.path().to_owned(), options, files).unwrap();
    let record = record();
    let mut writer = store.create(record.clone()).await.unwrap();
    let refused = (1..).find_map(|number| writer.append(&turn(number)).err()).unwrap();
    assert_eq!(refused, StoreError::Full);
    store.delete(record.id).await.unwrap();
    assert_eq!(store.record(record.id).await, Err(StoreError::Unknown(record.id)));
}
