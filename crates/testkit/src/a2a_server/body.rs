//! A body that is filled before it is sent, and may end badly or not at all.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use serde_json::Value;

#[derive(Default)]
struct Pieces {
    ready: VecDeque<Bytes>,
    end: End,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum End {
    #[default]
    Orderly,
    /// The connection breaks.
    Cut,
    /// Nothing more comes, and the connection stays.
    Never,
}

pub(super) struct ChannelBody(Arc<Mutex<Pieces>>);

pub(super) struct Sink(Arc<Mutex<Pieces>>);

impl ChannelBody {
    pub fn new() -> (Sink, Self) {
        let pieces = Arc::new(Mutex::new(Pieces::default()));
        (Sink(Arc::clone(&pieces)), Self(pieces))
    }
}

impl Sink {
    pub fn raw(&mut self, bytes: Bytes) {
        self.change(|pieces| pieces.ready.push_back(bytes));
    }

    pub fn event(&mut self, event: &Value) {
        self.raw(Bytes::from(format!("data: {event}\n\n")));
    }

    pub fn stay(&mut self) {
        self.change(|pieces| pieces.end = End::Never);
    }

    pub fn cut(&mut self) {
        self.change(|pieces| pieces.end = End::Cut);
    }

    fn change(&mut self, change: impl FnOnce(&mut Pieces)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Body for ChannelBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let mut pieces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(piece) = pieces.ready.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match pieces.end {
            End::Orderly => Poll::Ready(None),
            End::Never => Poll::Pending,
            End::Cut => {
                // What was said leaves first: the cut comes with the next look at the body.
                pieces.end = End::Orderly;
                context.waker().wake_by_ref();
                Poll::Ready(Some(Err(io::Error::other("the connection is cut"))))
            }
        }
    }
}
