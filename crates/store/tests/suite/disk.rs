//! What only a disk can do: torn ends, damage, newer files, a second owner.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gembridge_core::log::LogEntry;
use gembridge_core::model::{Event, Seq, SessionId, TurnId};
use gembridge_core::store::{Store as _, StoreError};
use gembridge_store::{DiskOptions, DiskStore};
use tempfile::TempDir;

use super::samples::{SMALL, entry, record, spoken, turn, turns};

const ALL: Seq = Seq(u64::MAX);

/// A store whose one session has these batches; the first are synced.
struct Laboratory {
    folder: TempDir,
    store: DiskStore,
    id: SessionId,
}

impl Laboratory {
    async fn new(options: DiskOptions, synced: &[LogEntry], unsynced: &[LogEntry]) -> Self {
        let folder = TempDir::new().unwrap();
        let store = DiskStore::open_with(folder.path(), options).unwrap();
        let record = record("me", 1);
        let mut writer = store.create(record.clone()).await.unwrap();
        for batch in synced.chunks(6) {
            writer.append(batch).unwrap();
        }
        writer.sync().await.unwrap();
        writer.append(unsynced).unwrap();
        Self { folder, store, id: record.id }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("sessions").join(self.id.to_string())
    }

    fn index(&self) -> PathBuf {
        self.log().join("index")
    }

    /// The segments, oldest first.
    fn segments(&self) -> Vec<PathBuf> {
        let paths = fs::read_dir(self.log()).unwrap().map(|entry| entry.unwrap().path());
        let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|kind| kind == "log")).collect();
        paths.sort();
        paths
    }

    fn last_segment(&self) -> PathBuf {
        self.segments().pop().unwrap()
    }

    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let paths = fs::read_dir(self.log()).unwrap().map(|entry| entry.unwrap().path());
        paths.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
    }

    fn restore(&self, files: &[(PathBuf, Vec<u8>)]) {
        fs::remove_dir_all(self.log()).unwrap();
        fs::create_dir(self.log()).unwrap();
        for (path, bytes) in files {
            fs::write(path, bytes).unwrap();
        }
    }

    async fn read(&self) -> Result<Vec<LogEntry>, StoreError> {
        self.store.read(self.id, Seq::START, ALL, usize::MAX).await
    }

    /// Reads, reopens, appends `next` and reads again.
    async fn assert_holds_and_goes_on(&self, expected: &[LogEntry]) {
        assert_eq!(self.read().await.unwrap(), expected);
        let mut reopened = self.store.reopen(self.id, usize::MAX).await.unwrap();
        assert_eq!(reopened.tail, expected);
        assert_eq!(reopened.last, Seq(expected.len() as u64));
        let next = spoken(expected.len() as u64 + 1, 99, "and on");
        reopened.writer.append(std::slice::from_ref(&next)).unwrap();
        let mut grown = expected.to_vec();
        grown.push(next);
        assert_eq!(self.read().await.unwrap(), grown);
        reopened.writer.sync().await.unwrap();
        drop(reopened);
        assert_eq!(self.read().await.unwrap(), grown);
    }
}

fn start_of_last_record(before: &[u8], after: &[u8]) -> usize {
    assert_eq!(before, &after[..before.len()]);
    before.len()
}

#[tokio::test]
async fn a_record_torn_at_any_byte_is_cut_and_all_before_it_stay() {
    let whole = turns(1..=2);
    let bench = Laboratory::new(DiskOptions::default(), &whole, &[]).await;
    let before = fs::read(bench.last_segment()).unwrap();
    let last = spoken(13, 3, "the last words");
    let mut reopened = bench.store.reopen(bench.id, 0).await.unwrap();
    reopened.writer.append(&[last]).unwrap();
    drop(reopened);
    let files = bench.files();
    let after = fs::read(bench.last_segment()).unwrap();
    for cut in start_of_last_record(&before, &after)..after.len() {
        bench.restore(&files);
        fs::write(bench.last_segment(), &after[..cut]).unwrap();
        bench.assert_holds_and_goes_on(&whole).await;
    }
}

#[tokio::test]
async fn an_end_that_was_garbled_in_any_byte_is_cut() {
    let whole = turns(1..=2);
    let bench = Laboratory::new(DiskOptions::default(), &whole, &[]).await;
    let before = fs::read(bench.last_segment()).unwrap();
    let mut reopened = bench.store.reopen(bench.id, 0).await.unwrap();
    reopened.writer.append(&[spoken(13, 3, "the last words")]).unwrap();
    drop(reopened);
    let files = bench.files();
    let after = fs::read(bench.last_segment()).unwrap();
    for place in start_of_last_record(&before, &after)..after.len() {
        bench.restore(&files);
        let mut garbled = after.clone();
        garbled[place] ^= 0x55;
        fs::write(bench.last_segment(), garbled).unwrap();
        bench.assert_holds_and_goes_on(&whole).await;
    }
}

#[tokio::test]
async fn zeros_and_noise_after_the_end_are_cut() {
    let whole = turns(1..=2);
    for noise in [vec![0; 1], vec![0; 5_000], vec![0xff; 4], vec![0xff; 300], b"[1,2".to_vec()] {
        let bench = Laboratory::new(DiskOptions::default(), &whole, &[]).await;
        let mut bytes = fs::read(bench.last_segment()).unwrap();
        bytes.extend(noise);
        fs::write(bench.last_segment(), bytes).unwrap();
        bench.assert_holds_and_goes_on(&whole).await;
    }
}

#[tokio::test]
async fn a_first_segment_torn_in_its_header_is_an_empty_log() {
    for len in 0..16 {
        let bench = Laboratory::new(DiskOptions::default(), &[], &turn(1)).await;
        let bytes = fs::read(bench.last_segment()).unwrap();
        fs::write(bench.last_segment(), &bytes[..len]).unwrap();
        bench.assert_holds_and_goes_on(&[]).await;
    }
}

#[tokio::test]
async fn a_power_cut_that_kept_a_later_segment_but_not_the_end_of_an_earlier_one_leaves_no_gap() {
    let bench = Laboratory::new(SMALL, &turns(1..=10), &[]).await;
    let mut reopened = bench.store.reopen(bench.id, 0).await.unwrap();
    let synced = bench.segments().len();
    let index = fs::read(bench.index()).unwrap();
    for number in 11..=30 {
        reopened.writer.append(&turn(number)).unwrap();
    }
    drop(reopened);
    let segments = bench.segments();
    assert!(segments.len() > synced + 2);
    let torn = &segments[synced];
    let bytes = fs::read(torn).unwrap();
    fs::write(torn, &bytes[..bytes.len() - 3]).unwrap();
    fs::write(bench.index(), index).unwrap();

    let held = bench.read().await.unwrap();
    assert!(held.len() > 60 && held.len() < 180);
    assert_eq!(held, turns(1..=30)[..held.len()]);
    bench.assert_holds_and_goes_on(&held).await;
}

#[tokio::test]
async fn what_was_synced_and_is_gone_is_reported_and_nothing_is_thrown_away() {
    let bench = Laboratory::new(DiskOptions::default(), &turns(1..=3), &[]).await;
    let bytes = fs::read(bench.last_segment()).unwrap();
    let short = &bytes[..bytes.len() - 1];
    fs::write(bench.last_segment(), short).unwrap();
    let reopened = bench.store.reopen(bench.id, 0).await;
    assert!(matches!(reopened.err(), Some(StoreError::Damaged(_))));
    assert!(matches!(bench.read().await, Err(StoreError::Damaged(_))));
    assert_eq!(fs::read(bench.last_segment()).unwrap(), short);
}

#[tokio::test]
async fn damage_in_the_middle_is_reported_and_what_lies_around_it_can_be_read() {
    let bench = Laboratory::new(DiskOptions::default(), &turns(1..=3), &[]).await;
    let mut bytes = fs::read(bench.last_segment()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(bench.last_segment(), bytes).unwrap();
    assert!(matches!(bench.read().await, Err(StoreError::Damaged(_))));
    let first = bench.store.read(bench.id, Seq::START, Seq(3), 9).await.unwrap();
    assert_eq!(first, turn(1)[..3]);
}

#[tokio::test]
async fn a_lost_or_damaged_index_is_made_again_from_the_log() {
    let (synced, unsynced) = (turns(1..=20), turns(21..=22));
    let whole = turns(1..=22);
    let bench = Laboratory::new(SMALL, &synced, &unsynced).await;
    let files = bench.files();
    let index = fs::read(bench.index()).unwrap();
    let damages = (0..index.len()).step_by(29).map(|place| {
        let mut damaged = index.clone();
        damaged[place] ^= 0x10;
        Some(damaged)
    });
    let shorter = (0..index.len()).step_by(31).map(|len| Some(index[..len].to_vec()));
    for damage in [None].into_iter().chain(damages).chain(shorter) {
        bench.restore(&files);
        match damage {
            Some(bytes) => fs::write(bench.index(), bytes).unwrap(),
            None => fs::remove_file(bench.index()).unwrap(),
        }
        let starts = bench.store.turn_starts(bench.id, 50).await.unwrap();
        assert_eq!(starts.iter().map(|start| start.turn.0).collect::<Vec<_>>(), (1..=22).collect::<Vec<_>>());
        bench.assert_holds_and_goes_on(&whole).await;
        let starts = bench.store.turn_starts(bench.id, 50).await.unwrap();
        assert_eq!(starts.len(), 23);
    }
}

#[tokio::test]
async fn the_newest_turn_is_found_without_reading_the_log_before_it() {
    let bench = Laboratory::new(SMALL, &turns(1..=200), &[]).await;
    let segments = bench.segments();
    assert!(segments.len() > 20);
    // Whatever needs these would fail.
    for segment in &segments[..segments.len() - 2] {
        fs::remove_file(segment).unwrap();
    }
    let starts = bench.store.turn_starts(bench.id, 2).await.unwrap();
    assert_eq!(starts.iter().map(|start| start.turn).collect::<Vec<_>>(), [TurnId(199), TurnId(200)]);
    let read = bench.store.read(bench.id, starts[1].after, ALL, 1).await.unwrap();
    assert_eq!(read, turn(200)[..1]);
    let reopened = bench.store.reopen(bench.id, 6).await.unwrap();
    assert_eq!(reopened.tail, turn(200));
}

#[tokio::test]
async fn text_that_is_part_of_its_frame_is_stored_once() {
    let long = "x".repeat(100_000);
    let bench = Laboratory::new(DiskOptions::default(), &[spoken(1, 1, &long)], &[]).await;
    assert!(fs::metadata(bench.last_segment()).unwrap().len() < 101_000);
}

#[tokio::test]
async fn structured_data_is_stored_about_as_it_is_not_as_a_list_of_numbers() {
    let json = format!("{{\"out\":\"{}\"}}", "y".repeat(10_000));
    let options = Event::Options(gembridge_core::model::Opaque(json.into()));
    let bench = Laboratory::new(DiskOptions::default(), &[entry(1, None, options)], &[]).await;
    assert!(fs::metadata(bench.last_segment()).unwrap().len() < 10_200);
}

#[tokio::test]
async fn everything_is_private_to_its_owner() {
    fn check(path: &Path) {
        let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{}", path.display());
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                check(&entry.unwrap().path());
            }
        }
    }
    let outside = TempDir::new().unwrap();
    let folder = outside.path().join("state/gembridge");
    let store = DiskStore::open(&folder).unwrap();
    let mut writer = store.create(record("me", 1)).await.unwrap();
    writer.append(&turn(1)).unwrap();
    writer.sync().await.unwrap();
    check(&folder);
}

#[test]
fn a_folder_of_others_that_anybody_can_read_is_refused_and_our_own_is_closed() {
    let folder = TempDir::new().unwrap();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(), open.clone()).unwrap();
    fs::write(folder.path().join("thesis.txt"), "mine").unwrap();
    let Err(StoreError::Refused(sentence)) = DiskStore::open(folder.path()) else { panic!("it was opened") };
    assert!(sentence.contains("chmod 700"), "{sentence}");
    fs::remove_file(folder.path().join("thesis.txt")).unwrap();
    drop(DiskStore::open(folder.path()).unwrap());
    fs::set_permissions(folder.path(), open).unwrap();
    drop(DiskStore::open(folder.path()).unwrap());
    let mode = fs::metadata(folder.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test]
async fn r21_a_database_of_a_newer_version_is_refused_and_left_alone() {
    let folder = TempDir::new().unwrap();
    drop(DiskStore::open(folder.path()).unwrap());
    let path = folder.path().join("gembridge.db");
    for journal in ["DELETE", "WAL"] {
        let database = rusqlite::Connection::open(&path).unwrap();
        database.pragma_update(None, "journal_mode", journal).unwrap();
        database.pragma_update(None, "user_version", 99).unwrap();
        // Leaves the version in the write-ahead log, as a process that was killed would.
        let config = rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        database.set_db_config(config, true).unwrap();
        database.close().unwrap();
        let before = fs::read(&path).unwrap();
        let Err(StoreError::Refused(sentence)) = DiskStore::open(folder.path()) else { panic!("it was opened") };
        assert!(sentence.contains("newer version") && sentence.contains("99"), "{sentence}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[tokio::test]
async fn r21_an_empty_database_is_brought_up_to_date() {
    let folder = TempDir::new().unwrap();
    drop(DiskStore::open(folder.path()).unwrap());
    fs::write(folder.path().join("gembridge.db"), "").unwrap();
    let store = DiskStore::open(folder.path()).unwrap();
    assert_eq!(store.list(None, 1).await.unwrap(), []);
    drop(store);
    let database = rusqlite::Connection::open(folder.path().join("gembridge.db")).unwrap();
    let version: u32 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 1);
}

#[test]
fn a_file_that_is_no_database_is_reported_and_left_alone() {
    let folder = TempDir::new().unwrap();
    drop(DiskStore::open(folder.path()).unwrap());
    let path = folder.path().join("gembridge.db");
    let text = "this is not a database, whatever its name says. ".repeat(40);
    fs::write(&path, &text).unwrap();
    assert!(matches!(DiskStore::open(folder.path()).err(), Some(StoreError::Damaged(_))));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn r22_a_second_owner_of_the_folder_is_refused_until_the_first_is_gone() {
    let folder = TempDir::new().unwrap();
    let store = DiskStore::open(folder.path()).unwrap();
    let writer = store.create(record("me", 1)).await.unwrap();
    for _ in 0..2 {
        let Err(StoreError::InUse(sentence)) = DiskStore::open(folder.path()) else { panic!("it was opened") };
        assert!(sentence.contains("in use"), "{sentence}");
        assert!(sentence.contains(&std::process::id().to_string()), "{sentence}");
    }
    drop(store);
    assert!(DiskStore::open(folder.path()).is_err(), "a writer still has it");
    drop(writer);
    assert!(DiskStore::open(folder.path()).is_ok());
}

#[tokio::test]
async fn a_deletion_that_was_cut_short_is_finished_or_taken_back_at_the_next_start() {
    let bench = Laboratory::new(DiskOptions::default(), &turn(1), &[]).await;
    let Laboratory { folder, store, id } = bench;
    drop(store);
    let (log, deleted) = (folder.path().join("sessions"), folder.path().join("deleted"));
    fs::rename(log.join(id.to_string()), deleted.join(id.to_string())).unwrap();
    let orphan = SessionId::new().to_string();
    fs::create_dir(deleted.join(&orphan)).unwrap();

    let store = DiskStore::open(folder.path()).unwrap();
    assert_eq!(store.read(id, Seq::START, ALL, 9).await.unwrap(), turn(1));
    assert_eq!(fs::read_dir(&deleted).unwrap().count(), 0);
}

#[tokio::test]
async fn syncs_of_many_sessions_at_once_are_all_answered() {
    let folder = TempDir::new().unwrap();
    let store = DiskStore::open(folder.path()).unwrap();
    let mut writers = Vec::new();
    for _ in 0..20 {
        writers.push(store.create(record("me", 1)).await.unwrap());
    }
    let mut syncs = Vec::new();
    for number in 1..=3 {
        for writer in &mut writers {
            writer.append(&turn(number)).unwrap();
            syncs.push(writer.sync());
        }
    }
    drop(writers);
    for sync in syncs {
        sync.await.unwrap();
    }
}
