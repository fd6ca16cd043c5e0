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
    /// How long it took to know how much there is.
    pub measured_for: Duration,
}

impl DiskStore {
    /// Forgets the sessions that shall not stay, records and logs.
    pub async fn retire(&self, keep: Retention) -> Result<Retired, StoreError> {
        let began = Instant::now();
        let mut surplus = match keep.bytes {
            Some(most) => self.blocking(|disk| bytes_below(&disk.folder.sessions())).await?.saturating_sub(most),
            None => 0,
        };
        let mut retired = Retired { records: Vec::new(), measured_for: began.elapsed() };
        let is_old = |record: &SessionRecord| keep.since.is_some_and(|since| record.updated < since);
        let mut after = Oldest::START;
        loop {
            let from = after.clone();
            let batch = self.disk.database.run(move |connection| database::oldest(connection, &from, BATCH)).await?;
            let Some(last) = batch.last() else { return Ok(retired) };
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
                let size = self.blocking(move |disk| bytes_below(&disk.folder.session(id))).await?;
                surplus = surplus.saturating_sub(size);
                retired.records.push(record);
                let store = self.clone();
                // Together, since each waits for the disk.
                leaving.spawn(async move {
                    let deleted = store.delete(id).await;
                    drop(claim);
                    deleted
                });
            }
            for deleted in leaving.join_all().await {
                deleted?;
            }
            if stays {
                return Ok(retired);
            }
        }
    }
}

/// How large all files below a folder are.
fn bytes_below(folder: &Path) -> Result<u64, StoreError> {
    let (mut bytes, mut folders) = (0, vec![folder.to_owned()]);
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
                Ok(metadata) => bytes += metadata.len(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failure(&error)),
            }
        }
    }
    Ok(bytes)
}
