//! The body of a request while it may still have to be passed on. Bodies are charged to their key for as long as anybody
//! holds them, so that it is let go once a turn has begun, and not only when the turn is over.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

#[derive(Clone)]
pub(super) struct KeptCopy(Arc<Mutex<Option<Bytes>>>);

/// Lets the copy go when it is dropped. A route that begins a turn holds it until then; any other drops it with its request.
#[derive(Clone)]
pub(crate) struct CopyRelease(#[expect(dead_code, reason = "held, never read")] Arc<Release>);

struct Release {
    copy: KeptCopy,
    /// Small ones stay until the route has answered: a route that forgets its request first can be passed on then.
    is_large: bool,
}

/// A body of up to this size is worth no bookkeeping.
const SMALL: usize = 64 << 10;

impl KeptCopy {
    pub(super) fn of(body: &Bytes) -> Self {
        Self(Arc::new(Mutex::new(Some(body.clone()))))
    }

    pub(super) fn release(&self) -> CopyRelease {
        let is_large =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(|it| it.len() > SMALL);
        CopyRelease(Arc::new(Release { copy: self.clone(), is_large }))
    }

    pub(super) fn take(&self) -> Option<Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        if self.is_large {
            drop(self.copy.take());
        }
    }
}
