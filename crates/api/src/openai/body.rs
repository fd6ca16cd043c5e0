//! The stream of an answer as the body of a response.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Error as BodyError;
use bytes::Bytes;
use gembridge_core::exchange::Exchange;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep};

use super::encode::Chunks;
use super::error;
use crate::identity::RequestId;
use crate::sse;

/// The stream of chunks. Dropped before its end, the client is gone and its turns are abandoned.
pub(super) struct AnswerBody {
    exchange: Exchange,
    chunks: Chunks,
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

impl AnswerBody {
    pub(super) fn new(exchange: Exchange, chunks: Chunks, request: RequestId, keep_alive: Duration) -> Self {
        let silence = Box::pin(tokio::time::sleep(keep_alive));
        let last = Instant::now();
        Self { exchange, chunks, request, keep_alive, silence, last, alarm: Alarm::Unset, done: false }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        loop {
            if !this.done && this.exchange.is_over() {
                this.write_end();
                this.done = true;
            }
            let has_room = !this.done && this.chunks.out().len() < FRAME;
            if has_room && this.exchange.poll_step(cx, &mut this.chunks).is_ready() {
                continue;
            }
            return match this.chunks.take() {
                Some(bytes) => {
                    this.last = Instant::now();
                    if this.alarm == Alarm::Set {
                        this.alarm = Alarm::Outdated;
                    }
                    Poll::Ready(Some(Ok(Frame::data(bytes))))
                }
                None if this.done => Poll::Ready(None),
                None => this.poll_silence(cx),
            };
        }
    }
}

/// What is ready goes out in one piece, up to about this many bytes.
const FRAME: usize = 32 << 10;

impl AnswerBody {
    /// The last words of the stream.
    fn write_end(&mut self) {
        match self.exchange.take_failure() {
            Some(failure) => error::event(self.chunks.out(), &error::problem(failure), &self.request),
            None => self.chunks.end(self.exchange.tokens()),
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
            return Poll::Ready(Some(Ok(Frame::data(sse::KEEP_ALIVE))));
        }
    }
}
