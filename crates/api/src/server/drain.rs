//! The server's shutdown as each connection sees it: first no new work is taken, then, once no request runs any more, idle
//! connections end too. In between a probe on an open connection reads that the gateway is not ready.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub struct Drain {
    /// No new work is taken.
    pub begun: CancellationToken,
    /// No request runs any more.
    pub over: CancellationToken,
    idle: AtomicUsize,
    idled: Notify,
}

impl Drain {
    /// One more connection has no work.
    pub fn add_idle(&self) {
        self.idle.fetch_add(1, Ordering::AcqRel);
        self.idled.notify_one();
    }

    /// One connection without work has ended.
    pub fn remove_idle(&self) {
        self.idle.fetch_sub(1, Ordering::AcqRel);
    }

    /// Connections without work.
    pub fn idle(&self) -> usize {
        self.idle.load(Ordering::Acquire)
    }

    /// Resolves when one more connection has no work.
    pub async fn idled(&self) {
        self.idled.notified().await;
    }
}
