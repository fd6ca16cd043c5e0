//! State folders of the first version, which had a folder for each session: `fixtures/v1` was written by it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gembridge_core::log::LogEntry;
use gembridge_core::model::{Seq, SessionId};
use gembridge_core::store::{Logs as _, Records as _, StoreError};
use gembridge_store::{DiskStore, Retention};
use tempfile::TempDir;

use super::disk::copy_folder;
use super::samples::{spoken, turns};

const ALL: Seq = Seq(u64::MAX);

/// Thirty turns in eight files, two turns in one file, and nothing.
const LONG: &str = "01a1e50c-bef9-706d-90fa-c0ab511cb5e5";
const SHORT: &str = "01a1e50c-befd-728e-aadb-f7a619ecced8";
const EMPTY: &str = "01a1e50c-befe-7336-a994-280b9ce95026";

fn first_version() -> TempDir {
    let folder = TempDir::new().unwrap();
    copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1"), folder.path());
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

fn id(text: &str) -> SessionId {
    text.parse().unwrap()
}

fn log(folder: &TempDir, id: &str, first: u64) -> PathBuf {
    folder.path().join("sessions").join(id).join(format!("{first:020}.log"))
}

async fn read(store: &DiskStore, session: &str) -> Result<Vec<LogEntry>, StoreError> {
    store.read(id(session), Seq::START, ALL, usize::MAX).await
}

#[tokio::test]
async fn r21_sessions_of_the_first_version_are_all_there_and_go_on() {
    let folder = first_version();
    let store = DiskStore::open(folder.path()).unwrap();
    let records = store.list(None, 9).await.unwrap();
    let found: Vec<_> = records.iter().map(|record| (record.id, record.updated.0)).collect();
    assert_eq!(found, [(id(EMPTY), 3_000), (id(SHORT), 2_000), (id(LONG), 1_000)]);
    assert_eq!(read(&store, LONG).await.unwrap(), turns(1..=30));
    assert_eq!(read(&store, SHORT).await.unwrap(), turns(1..=2));
    assert_eq!(read(&store, EMPTY).await.unwrap(), []);
    assert_eq!(store.turn_starts(id(LONG), 99).await.unwrap().len(), 30);

    let mut reopened = store.reopen(id(SHORT), 3).await.unwrap();
    assert_eq!(reopened.tail, turns(1..=2)[9..]);
    let next = spoken(13, 3, "and on");
    reopened.writer.append(std::slice::from_ref(&next)).unwrap();
    drop((reopened, store));
    assert!(!folder.path().join("sessions").exists(), "what was moved is gone");
    let store = DiskStore::open(folder.path()).unwrap();
    assert_eq!(read(&store, SHORT).await.unwrap(), [turns(1..=2), vec![next]].concat());
}

/// Until all are moved their sizes are not known; then the oldest leave until the rest fits, and no more.
#[tokio::test]
async fn r21_sessions_of_the_first_version_leave_only_as_far_as_they_must() {
    let folder = first_version();
    let store = DiskStore::open(folder.path()).unwrap();
    // The long one is the oldest, and alone makes up most of it.
    let keep = Retention { since: None, bytes: Some(8_000) };
    let mut gone = Vec::new();
    while gone.is_empty() {
        gone = store.retire(keep).await.unwrap();
    }
    assert_eq!(gone.iter().map(|record| record.id).collect::<Vec<_>>(), [id(LONG)]);
    assert_eq!(read(&store, SHORT).await.unwrap(), turns(1..=2));
    assert_eq!(store.retire(keep).await.unwrap(), []);
}

#[tokio::test]
async fn r21_a_torn_end_of_the_first_version_is_dropped() {
    let folder = first_version();
    let path = log(&folder, SHORT, 1);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_within(16..60);
    fs::write(&path, bytes).unwrap();
    let store = DiskStore::open(folder.path()).unwrap();
    assert_eq!(read(&store, SHORT).await.unwrap(), turns(1..=2));
}

#[tokio::test]
async fn r21_a_log_of_the_first_version_that_lost_something_says_so_and_is_left_alone() {
    let folder = first_version();
    let lost = log(&folder, LONG, 97);
    fs::remove_file(&lost).unwrap();
    for _ in 0..2 {
        let store = DiskStore::open(folder.path()).unwrap();
        let damaged = read(&store, LONG).await;
        assert!(matches!(&damaged, Err(StoreError::Damaged(what)) if what.contains("entry 97")), "{damaged:?}");
        assert!(store.reopen(id(LONG), 9).await.is_err());
        assert_eq!(read(&store, SHORT).await.unwrap(), turns(1..=2));
    }
    assert!(log(&folder, LONG, 121).exists());
    let store = DiskStore::open(folder.path()).unwrap();
    store.delete(id(LONG)).await.unwrap();
    assert!(!log(&folder, LONG, 121).exists());
    assert_eq!(read(&store, LONG).await, Err(StoreError::Unknown(id(LONG))));
}

#[tokio::test]
async fn r21_a_log_of_a_newer_version_is_refused_and_left_alone() {
    let folder = first_version();
    let path = log(&folder, SHORT, 1);
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 7;
    fs::write(&path, &bytes).unwrap();
    let store = DiskStore::open(folder.path()).unwrap();
    assert!(matches!(read(&store, SHORT).await, Err(StoreError::Refused(_))));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[tokio::test]
async fn a_deletion_of_the_first_version_that_was_cut_short_is_finished_or_taken_back() {
    let folder = first_version();
    let deleted = folder.path().join("deleted");
    fs::create_dir_all(&deleted).unwrap();
    fs::rename(folder.path().join("sessions").join(SHORT), deleted.join(SHORT)).unwrap();
    fs::create_dir(deleted.join(SessionId::new().to_string())).unwrap();
    let store = DiskStore::open(folder.path()).unwrap();
    assert_eq!(read(&store, SHORT).await.unwrap(), turns(1..=2));
    assert!(!deleted.exists());
}
