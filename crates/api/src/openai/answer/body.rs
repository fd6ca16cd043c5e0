//! The stream of an answer as the body of a response.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::Error as BodyError;
use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep};

use super::{Answers, Beginnings, Out};
use crate::sse;

/// The stream of chunks. Dropped before its end, the client is gone and its turns are abandoned.
pub(in crate::openai) struct AnswerBody {
    answers: Answers,
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
    pub(super) fn new(answers: Answers) -> Self {
        let silence = Box::pin(tokio::time::sleep(answers.app.config.keep_alive));
        Self { answers, silence, last: Instant::now(), alarm: Alarm::Unset, done: false }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let mut late = Beginnings::default();
        loop {
            if !this.done && this.answers.is_over() {
                this.answers.close();
                this.answers.write_end();
                this.done = true;
            }
            let more = !this.done && this.answers.written() < FRAME && this.answers.poll_step(cx, &mut late).is_ready();
            if more {
                continue;
            }
            return match this.answers.take() {
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
    /// Shows that the stream lives when nothing came for long. The alarm is moved only when it rings.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let is_early = self.alarm == Alarm::Outdated && self.last < self.silence.deadline();
        self.alarm = Alarm::Set;
        if is_early {
            return Poll::Pending;
        }
        let keep_alive = self.answers.app.config.keep_alive;
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

impl Answers {
    fn written(&mut self) -> usize {
        match &mut self.out {
            Out::Chunks(chunks) => chunks.out().len(),
            Out::Wholes(_) => 0,
        }
    }

    fn take(&mut self) -> Option<Bytes> {
        match &mut self.out {
            Out::Chunks(chunks) => chunks.take(),
            Out::Wholes(_) => None,
        }
    }
}
