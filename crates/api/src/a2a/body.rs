//! The stream of a task as the body of a response: each step an event, and signs of life where nothing happens.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Error as BodyError;
use bytes::{Bytes, BytesMut};
use gembridge_core::model::Timestamp;
use http_body::{Body, Frame};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep};

use super::A2a;
use super::error::Fault;
use super::follow::{Follow, Step};
use super::wire::Version;
use crate::sse;

/// How an event is written.
pub enum Envelope {
    /// As a response to this request.
    JsonRpc { version: Version, id: Box<RawValue> },
    /// Bare, as the binding that speaks plain HTTP has it.
    Http,
}

/// The task goes on when it is dropped: no client's connection is needed for it.
pub struct TaskBody {
    app: Arc<A2a>,
    follow: Follow,
    envelope: Envelope,
    keep_alive: Duration,
    silence: Pin<Box<Sleep>>,
    out: BytesMut,
    is_over: bool,
}

impl TaskBody {
    pub fn new(app: Arc<A2a>, follow: Follow, envelope: Envelope) -> Self {
        let keep_alive = app.parts.config.keep_alive;
        let silence = Box::pin(tokio::time::sleep(keep_alive));
        Self { app, follow, envelope, keep_alive, silence, out: BytesMut::new(), is_over: false }
    }

    /// The log says nothing of a task that was given up while nothing ran, so it is looked for now and then.
    fn close(&mut self, at: Timestamp) {
        let last = self.follow.close(at);
        self.write(Step::Updates(last.into_iter().collect()));
        self.is_over = true;
    }

    fn write(&mut self, step: Step) {
        let version = self.envelope.version();
        match step {
            Step::Task(task) => self.envelope.event(&mut self.out, version.begin(&task)),
            Step::Updates(updates) => {
                for update in updates {
                    self.envelope.event(&mut self.out, version.update(self.follow.fold().name(), &update));
                }
            }
            Step::Over => self.is_over = true,
        }
    }
}

impl Body for TaskBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        while this.out.is_empty() && !this.is_over {
            match this.follow.poll_step(cx) {
                Poll::Ready(Ok(step)) => this.write(step),
                Poll::Ready(Err(error)) => {
                    this.envelope.error(&mut this.out, &error.into());
                    this.is_over = true;
                }
                Poll::Pending => {
                    if this.silence.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    match this.app.index.get(this.follow.fold().name().id).and_then(|entry| entry.closed) {
                        Some(at) => this.close(at),
                        None => this.out.extend_from_slice(&sse::KEEP_ALIVE),
                    }
                }
            }
        }
        if this.out.is_empty() {
            return Poll::Ready(None);
        }
        this.silence.as_mut().reset(Instant::now() + this.keep_alive);
        Poll::Ready(Some(Ok(Frame::data(this.out.split().freeze()))))
    }
}

impl Envelope {
    fn version(&self) -> Version {
        match self {
            Self::JsonRpc { version, .. } => *version,
            Self::Http => Version::V10,
        }
    }

    fn event(&self, out: &mut BytesMut, value: Value) {
        let event = match self {
            Self::JsonRpc { id, .. } => json!({ "jsonrpc": "2.0", "id": id, "result": value }),
            Self::Http => value,
        };
        sse::data(out, event.to_string().as_bytes());
    }

    fn error(&self, out: &mut BytesMut, fault: &Fault) {
        let event = match self {
            Self::JsonRpc { version, id } => json!({ "jsonrpc": "2.0", "id": id, "error": version.error(fault) }),
            Self::Http => super::wire::v10::error::http(fault),
        };
        sse::data(out, event.to_string().as_bytes());
    }
}
