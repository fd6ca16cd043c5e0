//! What an answer leaves to be done. It waits until the answer is with the socket: a client shall not wait for our books.

use std::sync::{Arc, Mutex, PoisonError};

type Work = Box<dyn FnOnce() + Send>;

/// The work of one connection. In every request's extensions; done after each step of the connection, and at the latest
/// when nobody holds it any more.
#[derive(Clone, Default)]
pub struct Afterwards(Arc<Pile>);

#[derive(Default)]
struct Pile(Mutex<Vec<Work>>);

impl Afterwards {
    pub fn add(&self, work: impl FnOnce() + Send + 'static) {
        self.0.lock().push(Box::new(work));
    }

    pub(super) fn clear(&self) {
        self.0.clear();
    }
}

impl Pile {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Work>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clear(&self) {
        for work in std::mem::take(&mut *self.lock()) {
            work();
        }
    }
}

impl Drop for Pile {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn work_is_done_once_and_at_the_latest_at_the_end() {
        let done = Arc::new(AtomicUsize::new(0));
        let work = || {
            let done = Arc::clone(&done);
            move || {
                done.fetch_add(1, Ordering::Relaxed);
            }
        };
        let afterwards = Afterwards::default();
        afterwards.add(work());
        assert_eq!(done.load(Ordering::Relaxed), 0);
        afterwards.clear();
        afterwards.clear();
        assert_eq!(done.load(Ordering::Relaxed), 1);
        afterwards.add(work());
        drop(afterwards);
        assert_eq!(done.load(Ordering::Relaxed), 2);
    }
}
