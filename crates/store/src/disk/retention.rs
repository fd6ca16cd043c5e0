//! Sessions leave the disk when they are too old, or when all of them together are too large: the one that was used
//! longest ago first, and never one that is open.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use gembridge_core::model::Timestamp;
use gembridge_core::store::{SessionRecord, Store as _, StoreError};
use tokio::task::JoinSet;

use super::DiskStore;
use super::claims::Claim;
use super::database::{self, Oldest};
use super::files::failure;

/// How many are looked at in one go.
const BATCH: usize = 64;

/// What shall stay. What is left out keeps everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Sessions that were used after this.
    pub since: Option<Timestamp>,
    /// The newest ones that fit in so many bytes.
    pub bytes: Option<u64>,
}

/// What became of a look at everything.
#[derive(Debug, Default)]
pub struct Retired {
    /// Those that are gone, the one used longest ago first.
    pub records: Vec<SessionRecord>,
    /// How long it takes to look at what stays: the time that this look took, less the part of those that are gone.
    pub next_look: Duration,
}

impl DiskStore {
    /// Forgets the sessions that shall not stay, records and logs.
    pub async fn retire(&self, keep: Retention) -> Result<Retired, StoreError> {
        let began = Instant::now();
        let all = match keep.bytes {
            Some(_) => self.blocking(|disk| Extent::of(&disk.folder.sessions())).await?,
            None => Extent::default(),
        };
        let look = began.elapsed();
        let mut surplus = all.bytes.saturating_sub(keep.bytes.unwrap_or(u64::MAX));
        let mut files_left = all.files;
        let mut records = Vec::new();
        let is_old = |record: &SessionRecord| keep.since.is_some_and(|since| record.updated < since);
        let mut after = Oldest::START;
        loop {
            let from = after.clone();
            let batch = self.disk.database.run(move |connection| database::oldest(connection, &from, BATCH)).await?;
            let Some(last) = batch.last() else { break };
            after = Oldest::after(last);
            let mut leaving = JoinSet::new();
            let mut stays = false;
            for record in batch {
                stays = surplus == 0 && !is_old(&record);
                if stays {
                    break;
                }
                // Whoever has the log open has this too, and nobody opens it while we do.
                let Ok(claim) = Claim::take(&self.disk, record.id) else { continue };
                let id = record.id;
                let extent = self.blocking(move |disk| Extent::of(&disk.folder.session(id))).await?;
                surplus = surplus.saturating_sub(extent.bytes);
                files_left = files_left.saturating_sub(extent.files);
                records.push(record);
                let store = self.clone();
                // Together, since each waits for the disk.
                leaving.spawn(async move {
                    let deleted = store.delete(id).await;
                    drop(claim);
                    deleted
                });
            }
            let anything_left = !leaving.is_empty();
            for deleted in leaving.join_all().await {
                deleted?;
            }
            if anything_left {
                self.disk.database.run(database::give_back).await?;
            }
            if stays {
                break;
            }
        }
        Ok(Retired { records, next_look: part(look, files_left, all.files) })
    }
}

fn part(whole: Duration, left: u32, all: u32) -> Duration {
    whole.saturating_mul(left) / all.max(1)
}

/// What there is below a folder.
#[derive(Default)]
struct Extent {
    bytes: u64,
    files: u32,
}

impl Extent {
    fn of(folder: &Path) -> Result<Self, StoreError> {
        let (mut extent, mut folders) = (Self::default(), vec![folder.to_owned()]);
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                // Deleted meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries.map_err(|error| failure(&error))?,
            };
            for entry in entries {
                let entry = entry.map_err(|error| failure(&error))?;
                match entry.metadata() {
                    Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                    Ok(metadata) => {
                        extent.bytes += metadata.len();
                        extent.files += 1;
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(failure(&error)),
                }
            }
        }
        Ok(extent)
    }
}
