//! Which sessions leave the disk, and which do not.

use std::path::Path;

use gembridge_core::model::{SessionId, Timestamp};
use gembridge_core::store::{Logs as _, Records as _, StoreError};
use gembridge_store::{DiskStore, Retention};
use tempfile::TempDir;

use super::samples::{record, turn};

/// A session that was used last at `updated`, with a log of some size.
async fn session(store: &DiskStore, updated: u64) -> SessionId {
    let record = record("me", updated);
    let mut writer = store.create(record.clone()).await.unwrap();
    writer.append(&turn(1)).unwrap();
    record.id
}

#[tokio::test]
async fn sessions_that_were_not_used_since_leave_with_their_logs() {
    let root = TempDir::new().unwrap();
    let store = DiskStore::open(root.path()).unwrap();
    let (old, new) = (session(&store, 10).await, session(&store, 20).await);
    let open = record("me", 5);
    let writer = store.create(open.clone()).await.unwrap();
    let keep = Retention { since: Some(Timestamp(20)), bytes: None };
    let retired = store.retire(keep).await.unwrap();
    assert_eq!(retired.iter().map(|record| record.id).collect::<Vec<_>>(), [old]);
    assert_eq!(store.record(old).await, Err(StoreError::Unknown(old)));
    assert_eq!(
        store.read(old, gembridge_core::model::Seq::START, gembridge_core::model::Seq(9), 9).await,
        Err(StoreError::Unknown(old))
    );
    assert!(store.record(new).await.is_ok() && store.record(open.id).await.is_ok(), "an open one is never touched");
    drop(writer);
    let retired = store.retire(keep).await.unwrap();
    assert_eq!(retired.iter().map(|record| record.id).collect::<Vec<_>>(), [open.id], "once closed it goes as well");
    assert!(store.reopen(new, 10).await.is_ok());
}

#[tokio::test]
async fn sessions_that_are_too_large_together_leave_oldest_first_until_the_rest_fits() {
    let root = TempDir::new().unwrap();
    let store = DiskStore::open(root.path()).unwrap();
    let mut ids = Vec::new();
    for age in 0..200 {
        ids.push(session(&store, 1_000 + age).await);
    }
    assert_eq!(store.retire(Retention::default()).await.unwrap().len(), 0, "nothing asked for, nothing gone");
    let everything = Retention { since: None, bytes: Some(u64::MAX) };
    assert_eq!(store.retire(everything).await.unwrap().len(), 0);
    let retired = store.retire(Retention { since: None, bytes: Some(64 << 10) }).await.unwrap();
    let gone: Vec<_> = retired.iter().map(|record| record.id).collect();
    assert!(!gone.is_empty() && gone.len() < ids.len(), "{}", gone.len());
    assert_eq!(gone, ids[..gone.len()], "the oldest, in order");
    for id in &ids[gone.len()..] {
        assert_eq!(store.reopen(*id, 9).await.unwrap().tail, turn(1));
    }
    assert_eq!(store.list(None, 1_000).await.unwrap().len(), ids.len() - gone.len());
}

/// How long the database is once everything of it is in one file.
fn database_bytes(root: &Path) -> u64 {
    std::fs::metadata(root.join("gembridge.db")).unwrap().len()
}

#[tokio::test]
async fn what_sessions_took_in_the_database_is_given_back_with_them() {
    let root = TempDir::new().unwrap();
    let store = DiskStore::open(root.path()).unwrap();
    for age in 0..2_000 {
        session(&store, age).await;
    }
    drop(store);
    let full = database_bytes(root.path());
    let store = DiskStore::open(root.path()).unwrap();
    let keep = Retention { since: Some(Timestamp(1_990)), bytes: None };
    assert_eq!(store.retire(keep).await.unwrap().len(), 1_990);
    drop(store);
    let left = database_bytes(root.path());
    assert!(left < full / 8, "{full} bytes of two thousand, {left} of ten");
}

#[tokio::test]
async fn a_database_of_before_that_could_not_shrink_learns_it_and_keeps_its_records() {
    let root = TempDir::new().unwrap();
    let store = DiskStore::open(root.path()).unwrap();
    let id = session(&store, 10).await;
    drop(store);
    let path = root.path().join("gembridge.db");
    let vacuum = |database: &rusqlite::Connection| {
        database.pragma_query_value(None, "auto_vacuum", |row| row.get::<_, u32>(0)).unwrap()
    };
    let before = rusqlite::Connection::open(&path).unwrap();
    before.pragma_update(None, "journal_mode", "DELETE").unwrap();
    before.execute_batch("PRAGMA auto_vacuum = NONE; VACUUM").unwrap();
    assert_eq!(vacuum(&before), 0);
    before.pragma_update(None, "journal_mode", "WAL").unwrap();
    drop(before);

    let store = DiskStore::open(root.path()).unwrap();
    assert!(store.record(id).await.is_ok());
    drop(store);
    let after = rusqlite::Connection::open(&path).unwrap();
    assert_eq!(vacuum(&after), 2, "it gives back what it does not need, by and by");
}
