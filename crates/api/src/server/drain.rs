//! The word that the server drains, as each connection hears it: first that no new work is taken, then, once nobody works
//! any more, that those who only wait shall go too. Between the two a probe on an open connection learns that we are not
//! ready.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Default)]
pub struct Drain {
    begun: Word,
    over: Word,
    idlers: AtomicUsize,
    idled: Notify,
}

impl Drain {
    /// No new work from now on.
    pub fn begin(&self) {
        self.begun.say();
    }

    /// Nobody works any more.
    pub fn end(&self) {
        self.over.say();
    }

    pub fn has_begun(&self) -> bool {
        self.begun.is_said()
    }

    pub fn is_over(&self) -> bool {
        self.over.is_said()
    }

    pub async fn begun(&self) {
        self.begun.heard().await;
    }

    pub async fn over(&self) {
        self.over.heard().await;
    }

    /// One more connection without work.
    pub fn idle(&self) {
        self.idlers.fetch_add(1, Ordering::AcqRel);
        self.idled.notify_one();
    }

    /// One such connection is gone.
    pub fn leave(&self) {
        self.idlers.fetch_sub(1, Ordering::AcqRel);
    }

    /// Connections without work.
    pub fn idlers(&self) -> usize {
        self.idlers.load(Ordering::Acquire)
    }

    /// Resolves when one more connection is without work.
    pub async fn idled(&self) {
        self.idled.notified().await;
    }
}

/// Cheap to ask on every poll, and it wakes who waits.
#[derive(Debug, Default)]
struct Word {
    said: AtomicBool,
    wake: Notify,
}

impl Word {
    fn say(&self) {
        self.said.store(true, Ordering::Release);
        self.wake.notify_waiters();
    }

    fn is_said(&self) -> bool {
        self.said.load(Ordering::Acquire)
    }

    async fn heard(&self) {
        // Registered before the flag is read, so that no word falls between.
        let word = self.wake.notified();
        if !self.is_said() {
            word.await;
        }
    }
}
