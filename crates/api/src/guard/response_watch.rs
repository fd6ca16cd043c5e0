//! The response while it is sent: cut when its key is revoked, recorded when it ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tokio::sync::watch;

use crate::guard::record::{Ending, Record};
use crate::keys::KeyLease;

/// The end of a key, as one task waits for it. Polled often: the list of waiters is shared by every stream, so it is
/// touched only when keys have changed.
pub(super) struct Revocation {
    ended: Pin<Box<dyn Future<Output = ()> + Send>>,
    changes: watch::Receiver<u64>,
    /// The task that a change wakes.
    known: Option<Waker>,
}

impl Revocation {
    pub(super) fn of(lease: &KeyLease) -> Self {
        Self { changes: lease.changes(), ended: Box::pin(lease.clone().revoked()), known: None }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let is_known = self.known.as_ref().is_some_and(|known| known.will_wake(cx.waker()));
        if is_known && self.changes.has_changed().is_ok_and(|changed| !changed) {
            return Poll::Pending;
        }
        // Before it is asked, so that no change falls between.
        self.changes.mark_unchanged();
        self.known = Some(cx.waker().clone());
        self.ended.as_mut().poll(cx)
    }
}

/// A stream that ends when its key is revoked, and whose end is recorded.
struct Watched {
    body: Body,
    /// Nothing once it has ended.
    record: Option<Record>,
    lease: Option<KeyLease>,
    /// From the first pause on: most bodies never pause.
    revocation: Option<Revocation>,
    /// Pieces sent without a pause.
    run: u8,
}

/// Why a stream was cut. Nobody reads the text: the connection or the stream is reset.
#[derive(Debug, thiserror::Error)]
enum Cut {
    #[error("the key was revoked")]
    Revoked,
    #[error("the stream failed")]
    Panicked,
}

/// Records the end of a response: now if it is whole already, else when its stream ends.
pub fn watch(response: Response, mut record: Record, lease: Option<KeyLease>) -> Response {
    record.answered(response.status());
    if response.body().size_hint().exact().is_some() {
        record.end(Ending::Whole);
        return response;
    }
    response.map(|body| Body::new(Watched { body, record: Some(record), lease, revocation: None, run: 0 }))
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if this.record.is_none() {
            return Poll::Ready(None);
        }
        let Ok(polled) = catch_unwind(AssertUnwindSafe(|| Pin::new(&mut this.body).poll_frame(cx))) else {
            return this.cut(Ending::Broken, Cut::Panicked);
        };
        match polled {
            Poll::Ready(None) => {
                this.end(Ending::Whole);
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(failure))) => {
                this.end(Ending::Broken);
                Poll::Ready(Some(Err(failure)))
            }
            Poll::Pending if this.is_revoked(cx) => this.cut(Ending::Revoked, Cut::Revoked),
            Poll::Pending => {
                this.run = 0;
                Poll::Pending
            }
            Poll::Ready(Some(Ok(frame))) => {
                // A stream that never pauses must not outlive its key either.
                this.run = this.run.wrapping_add(1);
                if this.run == 0 && this.is_revoked(cx) {
                    return this.cut(Ending::Revoked, Cut::Revoked);
                }
                Poll::Ready(Some(Ok(frame)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.record.is_none() || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Watched {
    fn end(&mut self, ending: Ending) {
        if let Some(record) = self.record.take() {
            record.end(ending);
        }
    }

    fn is_revoked(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(lease) = &self.lease else { return false };
        self.revocation.get_or_insert_with(|| Revocation::of(lease)).poll(cx).is_ready()
    }

    fn cut<T>(&mut self, ending: Ending, why: Cut) -> Poll<Option<Result<T, axum::Error>>> {
        self.body = Body::empty();
        self.end(ending);
        Poll::Ready(Some(Err(axum::Error::new(why))))
    }
}
