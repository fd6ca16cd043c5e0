//! What a connection is doing, as its socket and its requests see it, for the deadlines that depend on it.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;

/// Shared by a connection's parts. With HTTP/1 all of them run in one task; with HTTP/2 each stream has its own.
#[derive(Debug)]
pub struct Activity {
    start: Instant,
    in_flight: AtomicU32,
    head_begun: AtomicBool,
    /// When the present phase began, in milliseconds from the start.
    since: AtomicU64,
    body_pending: AtomicBool,
    /// The answers under way on an HTTP/2 connection, whose readers can each stop on their own.
    departures: Mutex<Vec<Weak<Handed>>>,
}

/// When the last piece of an answer was handed over, in milliseconds from the start, as long as nothing more was asked
/// for; 0 otherwise.
#[derive(Debug, Default)]
struct Handed(AtomicU64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Busy,
    /// Some of a head has come, but not all.
    Head {
        since: Instant,
    },
    Idle {
        since: Instant,
    },
}

impl Activity {
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            in_flight: AtomicU32::new(0),
            head_begun: AtomicBool::new(false),
            since: AtomicU64::new(0),
            body_pending: AtomicBool::new(false),
            departures: Mutex::default(),
        }
    }

    pub fn phase(&self) -> Phase {
        if self.in_flight.load(Ordering::Acquire) > 0 {
            return Phase::Busy;
        }
        let since = self.start + Duration::from_millis(self.since.load(Ordering::Relaxed));
        if self.head_begun.load(Ordering::Relaxed) { Phase::Head { since } } else { Phase::Idle { since } }
    }

    pub fn bytes_came(&self) {
        if self.in_flight.load(Ordering::Acquire) == 0 && !self.head_begun.swap(true, Ordering::Relaxed) {
            self.mark();
        }
    }

    /// Whether a request's body has not been read to its end, so that more of it may still come.
    pub fn is_body_pending(&self) -> bool {
        self.body_pending.load(Ordering::Relaxed)
    }

    /// Whether a request is under way of which nothing more is to come.
    pub fn is_answering(&self) -> bool {
        self.in_flight.load(Ordering::Acquire) > 0 && !self.is_body_pending()
    }

    /// Whether something came that has not become a request.
    pub fn is_before_a_request(&self) -> bool {
        matches!(self.phase(), Phase::Head { .. })
    }

    /// Whether the reader of some answer has not asked for more for so long.
    pub fn is_stalled(&self, limit: Duration) -> bool {
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let now = self.now();
        let mut departures = self.departures.lock().unwrap_or_else(PoisonError::into_inner);
        departures.retain(|departure| departure.strong_count() > 0);
        departures.iter().filter_map(Weak::upgrade).any(|handed| {
            let handed = handed.0.load(Ordering::Relaxed);
            handed != 0 && now.saturating_sub(handed) >= limit
        })
    }

    fn mark(&self) {
        self.since.store(self.now(), Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// One request under way, until the last of its answer was handed over.
pub struct Flight(Arc<Activity>);

impl Flight {
    pub fn begin(activity: &Arc<Activity>) -> Self {
        activity.head_begun.store(false, Ordering::Relaxed);
        activity.in_flight.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(activity))
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.0.mark();
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A request's body, which tells when all of it has come.
pub struct Arriving {
    body: Incoming,
    activity: Arc<Activity>,
}

impl Arriving {
    pub fn new(body: Incoming, activity: &Arc<Activity>) -> Self {
        activity.body_pending.store(!body.is_end_stream(), Ordering::Relaxed);
        Self { body, activity: Arc::clone(activity) }
    }
}

impl http_body::Body for Arriving {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.activity.body_pending.store(false, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body; while it lives, the request is under way.
pub struct Departing {
    body: Body,
    flight: Flight,
    handed: Option<Arc<Handed>>,
}

impl Departing {
    pub fn new(body: Body, flight: Flight) -> Self {
        Self { body, flight, handed: None }
    }

    /// The same, with its reader watched.
    pub fn watched(body: Body, flight: Flight) -> Self {
        let handed = Arc::<Handed>::default();
        flight.0.departures.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&handed));
        Self { body, flight, handed: Some(handed) }
    }
}

impl http_body::Body for Departing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Some(handed) = &self.handed {
            let waits_for_reader = matches!(polled, Poll::Ready(Some(Ok(_))));
            handed.0.store(if waits_for_reader { self.flight.0.now().max(1) } else { 0 }, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
