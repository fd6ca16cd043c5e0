//! Old sessions leave the disk: clients of a stateless API leave a log behind with every conversation.

use std::time::Duration;

use gembridge_core::model::Timestamp;
use gembridge_store::{DiskStore, Retention};

use crate::config::settings::SessionSettings;

/// How much there is stands in the database, so a look costs next to nothing.
const PERIOD: Duration = Duration::from_secs(10);
const DAY: Duration = Duration::from_hours(24);

pub struct Retiring {
    store: DiskStore,
    days: u32,
    megabytes: u32,
}

impl Retiring {
    pub fn new(store: DiskStore, settings: &SessionSettings) -> Self {
        Self { store, days: settings.keep_days.0, megabytes: settings.keep_mb.0 }
    }

    /// At once, and from time to time. Never resolves.
    pub async fn keep(&self) {
        loop {
            self.look().await;
            tokio::time::sleep(PERIOD).await;
        }
    }

    async fn look(&self) {
        let keep = self.retention(Timestamp::now());
        if keep == Retention::default() {
            return;
        }
        match self.store.retire(keep).await {
            Ok(gone) if gone.is_empty() => {}
            Ok(gone) => {
                let (sessions, keep_days, keep_mb) = (gone.len(), self.days, self.megabytes);
                tracing::info!(sessions, keep_days, keep_mb, "old sessions were deleted");
            }
            Err(error) => tracing::warn!(%error, "old sessions could not be deleted; they are tried again"),
        }
    }

    fn retention(&self, now: Timestamp) -> Retention {
        let age = u64::try_from((DAY * self.days).as_millis()).unwrap_or(u64::MAX);
        Retention {
            since: (self.days > 0).then(|| Timestamp(now.0.saturating_sub(age))),
            bytes: (self.megabytes > 0).then(|| u64::from(self.megabytes) << 20),
        }
    }
}
