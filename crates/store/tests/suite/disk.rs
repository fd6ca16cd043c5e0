//! What only a disk can do: torn ends, damage, newer files, a second owner.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gembridge_core::log::LogEntry;
use gembridge_core::model::{Event, Seq, SessionId, TurnId};
use gembridge_core::store::{Logs as _, Records as _, StoreError};
use gembridge_store::{DiskOptions, DiskStore};
use tempfile::TempDir;

use super::samples::{SMALL, entry, record, spoken, turn, turns};

const ALL: Seq = Seq(u64::MAX);

/// A copy of the folder of a store that is open: what would be there if its process were killed now.
fn as_if_killed(folder: &TempDir) -> TempDir {
    let copy = TempDir::new().unwrap();
    copy_folder(folder.path(), copy.path());
    copy
}

pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
}

/// The journal that has something in it.
fn journal(folder: &TempDir) -> PathBuf {
    let paths = fs::read_dir(folder.path().join("journal")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.collect();
    assert_eq!(paths.len(), 1);
    paths.pop().unwrap()
}

/// A store of one session with two turns, and the bytes that a last batch added to its journal.
struct LastBatch {
    folder: TempDir,
    id: SessionId,
    before: Vec<u8>,
    after: Vec<u8>,
    added: std::ops::Range<usize>,
}

impl LastBatch {
    async fn written_with(may_map: bool) -> Self {
        let folder = TempDir::new().unwrap();
        let options = DiskOptions { segment_bytes: 16 << 10, may_map, ..DiskOptions::default() };
        let store = DiskStore::open_with(folder.path(), options).unwrap();
        let record = record("me", 1);
        let mut writer = store.create(record.clone()).await.unwrap();
        writer.append(&turn(1)).unwrap();
        writer.append(&turn(2)).unwrap();
        let before = fs::read(journal(&folder)).unwrap();
        writer.append(&last_batch()).unwrap();
        let after = fs::read(journal(&folder)).unwrap();
        let differs = |(at, (old, new)): (usize, (&u8, &u8))| (old != new).then_some(at);
        let start = before.iter().zip(&after).enumerate().find_map(differs).unwrap();
        let end = after.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        let folder = as_if_killed(&folder);
        Self { folder, id: record.id, before, after, added: start..end }
    }

    /// Opens a copy whose journal is `bytes`, expects these entries, and goes on.
    async fn holds(&self, bytes: &[u8], expected: &[LogEntry]) {
        let folder = as_if_killed(&self.folder);
        fs::write(journal(&folder), bytes).unwrap();
        let store = DiskStore::open(folder.path()).unwrap();
        assert_eq!(store.read(self.id, Seq::START, ALL, usize::MAX).await.unwrap(), expected);
        let mut reopened = store.reopen(self.id, usize::MAX).await.unwrap();
        assert_eq!(reopened.tail, expected);
        let next = spoken(expected.len() as u64 + 1, 99, "and on");
        reopened.writer.append(std::slice::from_ref(&next)).unwrap();
        drop((reopened, store));
        let store = DiskStore::open(folder.path()).unwrap();
        let grown = [expected, &[next]].concat();
        assert_eq!(store.read(self.id, Seq::START, ALL, usize::MAX).await.unwrap(), grown);
    }
}

/// It counts as a whole or not at all.
fn last_batch() -> Vec<LogEntry> {
    vec![spoken(13, 3, "the last words"), spoken(14, 3, "and the very last")]
}

#[tokio::test]
async fn r14_a_batch_torn_at_any_byte_is_dropped_and_all_before_it_stay() {
    for may_map in [true, false] {
        let last = LastBatch::written_with(may_map).await;
        for cut in last.added.clone().step_by(3) {
            let mut torn = last.before.clone();
            torn[last.added.start..cut].copy_from_slice(&last.after[last.added.start..cut]);
            last.holds(&torn, &turns(1..=2)).await;
        }
        last.holds(&last.after, &[turns(1..=2), last_batch()].concat()).await;
    }
}

#[tokio::test]
async fn r14_a_batch_that_was_garbled_in_any_byte_is_dropped() {
    let last = LastBatch::written_with(true).await;
    for place in last.added.clone().step_by(3) {
        let mut garbled = last.after.clone();
        garbled[place] ^= 0x55;
        last.holds(&garbled, &turns(1..=2)).await;
    }
}

#[tokio::test]
async fn noise_behind_the_end_of_the_journal_is_no_part_of_it() {
    let last = LastBatch::written_with(true).await;
    let whole = [turns(1..=2), last_batch()].concat();
    for noise in [vec![0xff; 4], vec![0xff; 300], b"[1,2".to_vec(), last.after[64..400].to_vec()] {
        let mut bytes = last.after.clone();
        bytes[last.added.end..last.added.end + noise.len()].copy_from_slice(&noise);
        last.holds(&bytes, &whole).await;
    }
}

/// A frame as somebody could have made it who knows the format: it says that it belongs to the session, and its
/// checksum is right but for the salt of the segment.
#[tokio::test]
async fn what_a_segment_held_before_cannot_pass_for_what_it_holds_now() {
    let last = LastBatch::written_with(true).await;
    let mut bytes = last.before.clone();
    let mut forged = last.after[last.added.clone()].to_vec();
    let salt: [u8; 4] = last.after[12..16].try_into().unwrap();
    forged[4..8].iter_mut().zip(salt).for_each(|(byte, salt)| *byte ^= salt);
    bytes[last.added.clone()].copy_from_slice(&forged);
    last.holds(&bytes, &turns(1..=2)).await;
}

/// A store that was closed, so that everything is in its database.
async fn archived(options: DiskOptions, entries: &[LogEntry]) -> (TempDir, SessionId) {
    let folder = TempDir::new().unwrap();
    let store = DiskStore::open_with(folder.path(), options).unwrap();
    let record = record("me", 1);
    let mut writer = store.create(record.clone()).await.unwrap();
    for batch in entries.chunks(6) {
        writer.append(batch).unwrap();
    }
    drop((writer, store));
    (folder, record.id)
}

#[tokio::test]
async fn damage_in_the_middle_is_reported_and_what_lies_around_it_can_be_read() {
    let (folder, id) = archived(SMALL, &turns(1..=30)).await;
    let database = rusqlite::Connection::open(folder.path().join("gembridge.db")).unwrap();
    let middle = "SELECT rowid, first, entries FROM log_chunks ORDER BY first LIMIT 1 OFFSET 10";
    let (row, first, mut entries): (i64, u32, Vec<u8>) =
        database.query_row(middle, (), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let half = entries.len() / 2;
    entries[half] ^= 1;
    database.execute("UPDATE log_chunks SET entries = ?2 WHERE rowid = ?1", (row, entries)).unwrap();
    database.close().unwrap();

    let store = DiskStore::open(folder.path()).unwrap();
    let read = store.read(id, Seq::START, ALL, usize::MAX).await;
    assert!(matches!(&read, Err(StoreError::Damaged(what)) if what.contains("delete the session")), "{read:?}");
    let before = usize::try_from(first).unwrap() - 1;
    assert_eq!(
        store.read(id, Seq::START, Seq(u64::from(first) - 1), usize::MAX).await.unwrap(),
        turns(1..=30)[..before]
    );
    assert_eq!(store.read(id, Seq(174), ALL, 9).await.unwrap(), turn(30));
}

#[tokio::test]
async fn the_newest_turn_is_found_without_reading_the_log_before_it() {
    let (folder, id) = archived(SMALL, &turns(1..=200)).await;
    // Whatever needs these would fail.
    let database = rusqlite::Connection::open(folder.path().join("gembridge.db")).unwrap();
    let removed = database.execute("DELETE FROM log_chunks WHERE first < 1180", ()).unwrap();
    assert!(removed > 20, "{removed}");
    database.close().unwrap();
    let store = DiskStore::open(folder.path()).unwrap();
    let starts = store.turn_starts(id, 2).await.unwrap();
    assert_eq!(starts.iter().map(|start| start.turn).collect::<Vec<_>>(), [TurnId(199), TurnId(200)]);
    assert_eq!(store.read(id, starts[1].after, ALL, 1).await.unwrap(), turn(200)[..1]);
    assert_eq!(store.reopen(id, 6).await.unwrap().tail, turn(200));
}

/// How many bytes of entries the database has.
fn stored_bytes(folder: &TempDir) -> u32 {
    let database = rusqlite::Connection::open(folder.path().join("gembridge.db")).unwrap();
    database.query_row("SELECT sum(length(entries)) FROM log_chunks", (), |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn text_that_is_part_of_its_frame_is_stored_once() {
    let long = "x".repeat(100_000);
    let (folder, _) = archived(DiskOptions::default(), &[spoken(1, 1, &long)]).await;
    assert!(stored_bytes(&folder) < 101_000);
}

#[tokio::test]
async fn structured_data_is_stored_about_as_it_is_not_as_a_list_of_numbers() {
    let json = format!("{{\"out\":\"{}\"}}", "y".repeat(10_000));
    let options = Event::Options(gembridge_core::model::Opaque(json.into()));
    let (folder, _) = archived(DiskOptions::default(), &[entry(1, None, options)]).await;
    assert!(stored_bytes(&folder) < 10_200);
}

#[tokio::test]
async fn a_conversation_makes_no_file() {
    fn files(folder: &TempDir) -> usize {
        fs::read_dir(folder.path()).unwrap().count() + fs::read_dir(folder.path().join("journal")).unwrap().count()
    }
    let folder = TempDir::new().unwrap();
    let store = DiskStore::open(folder.path()).unwrap();
    store.create(record("me", 1)).await.unwrap().append(&turn(1)).unwrap();
    let before = files(&folder);
    for _ in 0..100 {
        store.create(record("me", 1)).await.unwrap().append(&turn(1)).unwrap();
    }
    assert_eq!(files(&folder), before);
}

#[tokio::test]
async fn r21_a_journal_of_a_newer_version_is_refused_and_left_alone() {
    let last = LastBatch::written_with(true).await;
    let mut newer = last.after.clone();
    newer[8] = 99;
    let checksum = crc32fast::hash(&newer[..24]);
    newer[24..28].copy_from_slice(&checksum.to_le_bytes());
    fs::write(journal(&last.folder), &newer).unwrap();
    let Err(StoreError::Refused(sentence)) = DiskStore::open(last.folder.path()) else { panic!("it was opened") };
    assert!(sentence.contains("newer version") && sentence.contains("99"), "{sentence}");
    assert_eq!(fs::read(journal(&last.folder)).unwrap(), newer);
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
    assert_eq!(version, 2);
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
