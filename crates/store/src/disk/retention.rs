//! Sessions leave the disk when they are too old, or when all of them together are too large: the one that was used
//! longest ago first, and never one that is open. How much there is stands in the database, so nothing is searched.

use gembridge_core::model::Timestamp;
use gembridge_core::store::{SessionRecord, StoreError};

use super::DiskStore;
use super::database::{self, Oldest};
use super::sessions::Claim;

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
    /// Forgets the sessions that shall not stay, records and logs. Gives those that are gone, the one used longest ago
    /// first.
    pub async fn retire(&self, keep: Retention) -> Result<Vec<SessionRecord>, StoreError> {
        let mut surplus = self.surplus(keep).await?;
        let is_old = |record: &SessionRecord| keep.since.is_some_and(|since| record.updated < since);
        let mut gone = Vec::new();
        if surplus == 0 && keep.since.is_none() {
            return Ok(gone);
        }
        self.write_records().await?;
        let mut after = Oldest::START;
        loop {
            let from = after.clone();
            let batch = self.disk.database.run(move |connection| database::oldest(connection, &from, BATCH)).await?;
            let Some(last) = batch.last() else { break };
            after = Oldest::after(last);
            let before = gone.len();
            let mut stays = false;
            for record in batch {
                stays = surplus == 0 && !is_old(&record);
                if stays {
                    break;
                }
                let id = record.id;
                // Whoever has the log open has this too, and nobody opens it while we do.
                let Ok((_claim, _)) = Claim::take(&self.disk.sessions, id) else { continue };
                let bytes = self.disk.database.run(move |connection| database::bytes_of(connection, id)).await?;
                self.forget(id)?;
                surplus = surplus.saturating_sub(bytes);
                gone.push(record);
            }
            if gone.len() > before {
                self.write_records().await?;
                while self.disk.database.run(database::give_back).await? > 0 {}
            }
            if stays {
                break;
            }
        }
        Ok(gone)
    }

    /// How many bytes there are too many.
    async fn surplus(&self, keep: Retention) -> Result<u64, StoreError> {
        // While sessions of an earlier version are moved in, nobody knows how large they are.
        let Some(most) = keep.bytes.filter(|_| self.disk.import.is_counted()) else { return Ok(0) };
        let known = self.disk.database.run(database::bytes).await?;
        if known + self.disk.journal.pending_bytes() <= most {
            return Ok(0);
        }
        self.blocking(|disk| disk.journal.archive_now()).await?;
        Ok(self.disk.database.run(database::bytes).await?.saturating_sub(most))
    }
}
