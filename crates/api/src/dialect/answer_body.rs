//! The stream of an answer as the body of a response.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Error as BodyError;
use bytes::Bytes;
use bytes::BytesMut;
use gembridge_core::exchange::{AnswerSink, Exchange, ExchangeError, TokenCount};
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep};

use crate::identity::RequestId;

/// Writes the pieces of all answers of a request as a dialect's stream.
pub(crate) trait StreamEncoder: AnswerSink + Send + Unpin + 'static {
    /// What was written and not taken yet.
    fn out(&mut self) -> &mut BytesMut;
    /// The end of a stream that went well.
    fn end(&mut self, tokens: TokenCount);
    /// The last words of a stream that cannot go on.
    fn fail(&mut self, failure: ExchangeError, request: &RequestId);
    /// A sign that the stream lives, while the agent is silent.
    fn keep_alive(&mut self);

    /// What was written since the last time.
    fn take(&mut self) -> Option<Bytes> {
        let out = self.out();
        (!out.is_empty()).then(|| out.split().freeze())
    }
}

/// The stream of an answer. Dropped before its end, the client is gone and its turns are abandoned.
pub(crate) struct AnswerBody<E> {
    exchange: Exchange,
    encoder: E,
    request: RequestId,
    keep_alive: Duration,
    silence: Pin<Box<Sleep>>,
    /// When something last went out.
    last: Instant,
    alarm: Alarm,
    done: bool,
}

/// What is known of the alarm without asking it: timers are dear where pieces are many.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alarm {
    /// It does not know yet whom to wake.
    Unset,
    Set,
    /// It is set, and something went out since it was asked last.
    Outdated,
}

impl<E: StreamEncoder> AnswerBody<E> {
    pub(crate) fn new(exchange: Exchange, encoder: E, request: RequestId, keep_alive: Duration) -> Self {
        let silence = Box::pin(tokio::time::sleep(keep_alive));
        let last = Instant::now();
        Self { exchange, encoder, request, keep_alive, silence, last, alarm: Alarm::Unset, done: false }
    }

    pub(crate) fn encoder(&self) -> &E {
        &self.encoder
    }

    /// What was written stays; turns that run are abandoned.
    pub(crate) fn into_encoder(self) -> E {
        self.encoder
    }
}

impl<E: StreamEncoder> Body for AnswerBody<E> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        loop {
            if !this.done && this.exchange.is_over() {
                this.write_end();
                this.done = true;
            }
            let has_room = !this.done && this.encoder.out().len() < FRAME;
            if has_room && this.exchange.poll_step(cx, &mut this.encoder).is_ready() {
                continue;
            }
            return match this.encoder.take() {
                Some(bytes) => {
                    this.last = Instant::now();
                    if this.alarm == Alarm::Set {
                        this.alarm = Alarm::Outdated;
                    }
                    Poll::Ready(Some(Ok(Frame::data(bytes))))
                }
                None if this.done => {
                    this.exchange.delivered();
                    Poll::Ready(None)
                }
                None => this.poll_silence(cx),
            };
        }
    }
}

/// What is ready goes out in one piece, up to about this many bytes.
const FRAME: usize = 32 << 10;

impl<E: StreamEncoder> AnswerBody<E> {
    /// The last words of the stream.
    fn write_end(&mut self) {
        match self.exchange.take_failure() {
            Some(failure) => self.encoder.fail(failure, &self.request),
            None => self.encoder.end(self.exchange.tokens()),
        }
    }

    /// Shows that the stream lives when nothing came for long. The alarm is moved only when it rings.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let is_early = self.alarm == Alarm::Outdated && self.last < self.silence.deadline();
        self.alarm = Alarm::Set;
        if is_early {
            return Poll::Pending;
        }
        let keep_alive = self.keep_alive;
        loop {
            ready!(self.silence.as_mut().poll(cx));
            let (now, due) = (Instant::now(), self.last + keep_alive);
            if now < due {
                self.silence.as_mut().reset(due);
                continue;
            }
            self.last = now;
            self.silence.as_mut().reset(now + keep_alive);
            self.encoder.keep_alive();
            if let Some(bytes) = self.encoder.take() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
        }
    }
}
