//! The word that the server drains, as each connection hears it.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Cheap to ask on every poll, and it wakes who waits.
#[derive(Debug, Default)]
pub struct Drain {
    begun: AtomicBool,
    wake: Notify,
}

impl Drain {
    pub fn begin(&self) {
        self.begun.store(true, Ordering::Release);
        self.wake.notify_waiters();
    }

    pub fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Acquire)
    }

    pub async fn begun(&self) {
        // Registered before the flag is read, so that no word falls between.
        let word = self.wake.notified();
        if !self.has_begun() {
            word.await;
        }
    }
}
