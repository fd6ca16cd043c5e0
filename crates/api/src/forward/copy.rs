//! The body of a request while it may still have to be passed on. Bodies are charged to their key for as long as anybody
//! holds them, so that it is let go once a turn has begun, and not only when the turn is over.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

#[derive(Clone)]
pub(super) struct KeptCopy(Arc<Mutex<Option<Bytes>>>);

/// For a route that begins a turn: from then on the request is not passed on any more.
#[derive(Clone)]
pub(crate) struct CopyRelease(KeptCopy);

impl KeptCopy {
    pub(super) fn of(body: &Bytes) -> Self {
        Self(Arc::new(Mutex::new(Some(body.clone()))))
    }

    pub(super) fn release(&self) -> CopyRelease {
        CopyRelease(self.clone())
    }

    pub(super) fn take(&self) -> Option<Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl CopyRelease {
    pub(crate) fn release(&self) {
        drop(self.0.take());
    }
}
