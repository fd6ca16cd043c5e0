//! Old sessions leave the disk: clients of a stateless API leave a log behind with every conversation.

use std::ops::RangeInclusive;
use std::time::Duration;

use gembridge_core::model::Timestamp;
use gembridge_store::{DiskStore, Retention};

use crate::config::settings::SessionSettings;

/// To know how much there is, every folder is looked at: the more there are, the more seldom, so that it takes one part
/// in this many of the time.
const SHARE: u32 = 200;
const PERIOD: RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_hours(1);
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
            let pause = self.look().await.saturating_mul(SHARE);
            tokio::time::sleep(pause.clamp(*PERIOD.start(), *PERIOD.end())).await;
        }
    }

    /// How long it takes to know how much is left.
    async fn look(&self) -> Duration {
        let keep = self.retention(Timestamp::now());
        if keep == Retention::default() {
            return Duration::ZERO;
        }
        match self.store.retire(keep).await {
            Ok(retired) => {
                let sessions = retired.records.len();
                if sessions > 0 {
                    let (keep_days, keep_mb) = (self.days, self.megabytes);
                    tracing::info!(sessions, keep_days, keep_mb, "old sessions were deleted");
                }
                retired.next_look
            }
            Err(error) => {
                tracing::warn!(%error, "old sessions could not be deleted; they are tried again");
                Duration::ZERO
            }
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
