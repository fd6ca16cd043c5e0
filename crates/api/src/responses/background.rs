//! Responses that go on without their client: polled, followed from any event on, and cancelled by name.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Error as BodyError;
use bytes::{Bytes, BytesMut};
use gembridge_core::BoxFuture;
use gembridge_core::exchange::Exchange;
use http_body::{Body, Frame};
use tokio::sync::watch;
use tokio::time::interval_at;
use tokio_util::sync::CancellationToken;

use super::encode::Answer;
use super::error;
use super::kept::Stage;
use crate::dialect::StreamEncoder as _;
use crate::problem::Problem;

/// A response in the making, or made.
pub(super) struct Run {
    state: Mutex<State>,
    changes: watch::Sender<()>,
    cancelled: CancellationToken,
    weight: AtomicUsize,
}

struct State {
    answer: Answer,
    /// All events up to now.
    events: BytesMut,
    is_over: bool,
}

impl Run {
    /// Waits until the answer has begun, which is when it has a name.
    pub(super) async fn begin(exchange: &mut Exchange, answer: &mut Answer) -> Result<(), Problem> {
        poll_fn(|cx| {
            while answer.id().is_empty() && !exchange.is_over() {
                ready!(exchange.poll_step(cx, answer));
            }
            Poll::Ready(())
        })
        .await;
        match exchange.take_failure() {
            Some(failure) if answer.id().is_empty() => Err(error::problem(failure)),
            // It ends the response that has begun.
            Some(failure) => {
                answer.fail(error::problem(failure));
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub(super) fn new(answer: Answer) -> Arc<Self> {
        let state = State { answer, events: BytesMut::new(), is_over: false };
        Arc::new(Self {
            state: Mutex::new(state),
            changes: watch::Sender::new(()),
            cancelled: CancellationToken::new(),
            weight: AtomicUsize::new(0),
        })
    }

    /// Works until the answer is over. What was said is kept then.
    pub(super) async fn work(self: Arc<Self>, mut exchange: Exchange, keep_alive: Duration) {
        let mut signs = interval_at(tokio::time::Instant::now() + keep_alive, keep_alive);
        loop {
            let stepped = tokio::select! {
                biased;
                () = self.cancelled.cancelled() => break,
                () = poll_fn(|cx| self.poll_step(&mut exchange, cx)) => true,
                _ = signs.tick() => false,
            };
            if !stepped {
                self.change(|state| state.answer.sign_of_life());
            }
            if exchange.is_over() {
                break;
            }
        }
        let cancelled = self.cancelled.is_cancelled();
        self.change(|state| match exchange.take_failure() {
            _ if cancelled => state.answer.cancel(),
            Some(failure) => state.answer.fail(error::problem(failure)),
            None => state.answer.end(exchange.tokens()),
        });
        let over = self.lock().answer.over();
        if let Some(over) = over {
            over.keep(Stage::Background(Arc::clone(&self)));
        }
        // Its followers go when everything is done.
        self.change(|state| state.is_over = true);
    }

    fn poll_step(&self, exchange: &mut Exchange, cx: &mut Context<'_>) -> Poll<()> {
        if exchange.is_over() {
            return Poll::Ready(());
        }
        let stepped = exchange.poll_step(cx, &mut self.lock().answer);
        self.change(|_| {});
        stepped
    }

    /// Takes up what was written, and tells those who follow.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        if let Some(written) = state.answer.take() {
            state.events.extend_from_slice(&written);
            self.weight.store(state.events.len(), Ordering::Relaxed);
        }
        drop(state);
        self.changes.send_replace(());
    }

    /// The response as it stands.
    pub(super) fn response(&self) -> Vec<u8> {
        self.lock().answer.encode()
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Ends the turn, and waits until the response says so.
    pub(super) async fn cancel(&self) {
        let mut changes = self.changes.subscribe();
        self.cancelled.cancel();
        while !self.is_over() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// About what its events take.
    pub(super) fn weight(&self) -> usize {
        self.weight.load(Ordering::Relaxed)
    }

    /// It can be had from now on.
    pub(super) fn keep_running(self: &Arc<Self>) {
        self.lock().answer.keep_running(Stage::Background(Arc::clone(self)));
    }

    /// The events after the one with this number, and those that come.
    pub(super) fn follow(self: &Arc<Self>, after: Option<u64>) -> Events {
        let state = self.lock();
        let skipped =
            after.map_or(0, |after| usize::try_from(after).map_or(usize::MAX, |after| after.saturating_add(1)));
        let ends = memchr::memmem::find_iter(&state.events, b"\n\n").map(|at| at + 2);
        let at = if skipped == 0 { 0 } else { ends.take(skipped).last().unwrap_or(0) };
        let waiting = changed(self.changes.subscribe());
        Events { run: Arc::clone(self), at, waiting }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Waiting = BoxFuture<'static, watch::Receiver<()>>;

fn changed(mut changes: watch::Receiver<()>) -> Waiting {
    Box::pin(async move {
        // The sender lives as long as the run, which is held.
        drop(changes.changed().await);
        changes
    })
}

/// The events of a run as a body. Dropped, the run goes on.
pub(super) struct Events {
    run: Arc<Run>,
    at: usize,
    waiting: Waiting,
}

impl Body for Events {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        loop {
            let (news, is_over) = {
                let state = self.run.lock();
                (Bytes::copy_from_slice(&state.events[self.at..]), state.is_over)
            };
            if !news.is_empty() {
                self.at += news.len();
                return Poll::Ready(Some(Ok(Frame::data(news))));
            }
            if is_over {
                return Poll::Ready(None);
            }
            let changes = ready!(self.waiting.as_mut().poll(cx));
            self.waiting = changed(changes);
        }
    }
}
