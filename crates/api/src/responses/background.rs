//! Responses that go on without their client: polled, followed from any event on, and cancelled by name.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use axum::Error as BodyError;
use bytes::{Bytes, BytesMut};
use gembridge_core::BoxFuture;
use gembridge_core::exchange::Exchange;
use http_body::{Body, Frame};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::encode::Answer;
use super::{Responses, error};
use crate::dialect::AnswerBody;
use crate::identity::RequestId;
use crate::problem::{Kind, Problem};

/// A response in the making, or made.
pub(super) struct Run {
    state: Mutex<State>,
    changes: watch::Sender<()>,
    cancelled: CancellationToken,
    weight: AtomicUsize,
}

struct State {
    stage: Stage,
    /// All events up to now.
    events: BytesMut,
}

enum Stage {
    Working(Box<AnswerBody<Answer>>),
    /// The response as JSON.
    Over(Bytes),
}

impl Run {
    /// Lets a response go on without its client. Waits until a session has the prompt, which is when the response has a name.
    pub(super) async fn begin(
        app: &Responses,
        mut exchange: Exchange,
        mut answer: Answer,
        request: RequestId,
    ) -> Result<Arc<Self>, Problem> {
        poll_fn(|cx| {
            while answer.id().is_empty() && !exchange.is_over() {
                ready!(exchange.poll_step(cx, &mut answer));
            }
            Poll::Ready(())
        })
        .await;
        if answer.id().is_empty() {
            let unknown = || Problem::new(Kind::Internal, "the response ended before it began");
            return Err(exchange.take_failure().map_or_else(unknown, error::problem));
        }
        let body = Box::new(AnswerBody::new(exchange, answer, request, app.dialects.config.keep_alive));
        let run = Arc::new(Self {
            state: Mutex::new(State { stage: Stage::Working(body), events: BytesMut::new() }),
            changes: watch::Sender::new(()),
            cancelled: CancellationToken::new(),
            weight: AtomicUsize::new(0),
        });
        if let Stage::Working(body) = &run.lock().stage {
            body.encoder().keep_running(Arc::clone(&run));
        }
        app.tasks.spawn(Arc::clone(&run).work());
        Ok(run)
    }

    /// Works until the answer is over. What was said is kept then.
    async fn work(self: Arc<Self>) {
        tokio::select! {
            biased;
            () = self.cancelled.cancelled() => self.end(Answer::cancel),
            () = poll_fn(|cx| self.poll_body(cx)) => self.end(|_| {}),
        }
    }

    fn poll_body(&self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut state = self.lock();
            let Stage::Working(body) = &mut state.stage else { return Poll::Ready(()) };
            let Some(Ok(frame)) = ready!(Pin::new(body).poll_frame(cx)) else { return Poll::Ready(()) };
            state.events.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
            self.weight.store(state.events.len(), Ordering::Relaxed);
            drop(state);
            self.changes.send_replace(());
        }
    }

    /// Nothing more comes: a turn that still runs is abandoned.
    fn end(&self, last: impl FnOnce(&mut Answer)) {
        let mut state = self.lock();
        if let Stage::Working(body) = std::mem::replace(&mut state.stage, Stage::Over(Bytes::new())) {
            let mut answer = body.into_encoder();
            last(&mut answer);
            state.stage = Stage::Over(answer.to_json().into());
        }
        drop(state);
        self.changes.send_replace(());
    }

    /// The response as it stands.
    pub(super) fn response(&self) -> Bytes {
        match &self.lock().stage {
            Stage::Working(body) => body.encoder().to_json().into(),
            Stage::Over(body) => body.clone(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.lock().stage, Stage::Over(_))
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

    /// The events after the one with this number, and those that come.
    pub(super) fn follow(self: &Arc<Self>, after: Option<u64>) -> Events {
        let skipped =
            after.map_or(0, |after| usize::try_from(after).map_or(usize::MAX, |after| after.saturating_add(1)));
        Events { run: Arc::clone(self), skipped, at: 0, waiting: changed(self.changes.subscribe()) }
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
    /// So many events are left out before anything is told.
    skipped: usize,
    at: usize,
    waiting: Waiting,
}

impl Body for Events {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        loop {
            let is_over = {
                let state = this.run.lock();
                let end = |events: &[u8]| memchr::memmem::find(events, EVENT_END).map(|at| at + EVENT_END.len());
                while this.skipped > 0
                    && let Some(end) = end(&state.events[this.at..])
                {
                    this.at += end;
                    this.skipped -= 1;
                }
                let news = if this.skipped == 0 { &state.events[this.at..] } else { &[] };
                if !news.is_empty() {
                    // A reader that does not read holds this much, not all that was said.
                    let news = Bytes::copy_from_slice(&news[..news.len().min(FRAME)]);
                    this.at += news.len();
                    return Poll::Ready(Some(Ok(Frame::data(news))));
                }
                matches!(state.stage, Stage::Over(_))
            };
            if is_over {
                return Poll::Ready(None);
            }
            let changes = ready!(this.waiting.as_mut().poll(cx));
            this.waiting = changed(changes);
        }
    }
}

/// The most that is copied for one reader at once.
const FRAME: usize = 32 << 10;
const EVENT_END: &[u8] = b"\n\n";
