//! Sessions leave the disk when they are too old, or when all of them together are too large: the one that was used
//! longest ago first, and never one that is open.

use std::fs;
use std::io;
use std::path::Path;

use gembridge_core::model::Timestamp;
use gembridge_core::store::{SessionRecord, Store as _, StoreError};

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

impl DiskStore {
    /// Forgets the sessions that shall not stay, records and logs, and gives their records.
    pub async fn retire(&self, keep: Retention) -> Result<Vec<SessionRecord>, StoreError> {
        let mut surplus = match keep.bytes {
            Some(most) => self.blocking(|disk| bytes_below(&disk.folder.sessions())).await?.saturating_sub(most),
            None => 0,
        };
        let is_old = |record: &SessionRecord| keep.since.is_some_and(|since| record.updated < since);
        let (mut retired, mut after) = (Vec::new(), Oldest::START);
        loop {
            let from = after.clone();
            let batch = self.disk.database.run(move |connection| database::oldest(connection, &from, BATCH)).await?;
            let Some(last) = batch.last() else { return Ok(retired) };
            after = Oldest::after(last);
            for record in batch {
                if surplus == 0 && !is_old(&record) {
                    return Ok(retired);
                }
                // Whoever has the log open has this too, and nobody opens it while we do.
                let Ok(_claim) = Claim::take(&self.disk, record.id) else { continue };
                let id = record.id;
                let size = self.blocking(move |disk| bytes_below(&disk.folder.session(id))).await?;
                self.delete(id).await?;
                surplus = surplus.saturating_sub(size);
                retired.push(record);
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
