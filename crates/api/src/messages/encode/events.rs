//! An answer as events of a stream: one block after the other, each opened, grown and closed. The hot path: the text is
//! spliced between two halves of an event that was serialised once.

use bytes::BytesMut;
use gembridge_core::exchange::{AnswerSink, ExchangeError, Finish, TokenCount};
use gembridge_core::model::{AgentName, ClientCall};
use serde::Serialize;

use super::{Growing, Head, SIGNATURE, Stop};
use crate::dialect::{HOLE, StreamEncoder, Template, Thoughts, arguments, quoted};
use crate::identity::RequestId;
use crate::messages::{error, wire};
use crate::sse;

pub(in crate::messages) struct Events {
    head: Head,
    /// The block that grows.
    open: Option<Open>,
    /// The number of the next block.
    next: usize,
    stop: Stop,
    out: BytesMut,
    /// Nothing but the head was written, and nobody has it yet.
    fresh: bool,
}

struct Open {
    kind: Growing,
    index: usize,
    more: Template,
}

impl Events {
    pub(in crate::messages) fn new(head: Head) -> Self {
        let mut events = Self { head, open: None, next: 0, stop: Stop::default(), out: BytesMut::new(), fresh: true };
        events.start();
        events
    }

    fn start(&mut self) {
        let start = wire::MessageStart { r#type: "message_start", message: self.head.message() };
        put(&mut self.out, "message_start", &start);
    }

    /// Opens a block, and closes the one before.
    fn begin(&mut self, block: &wire::ContentBlock) -> usize {
        self.close();
        self.fresh = false;
        let index = self.next;
        self.next += 1;
        let start = wire::BlockStart { r#type: "content_block_start", index, content_block: block };
        put(&mut self.out, "content_block_start", &start);
        index
    }

    fn grow(&mut self, kind: Growing, escaped: &[u8]) {
        if self.open.as_ref().is_none_or(|open| open.kind != kind) {
            self.open_growing(kind);
        }
        if let Some(open) = &self.open {
            open.more.fill(escaped, &mut self.out);
        }
    }

    fn open_growing(&mut self, kind: Growing) {
        let empty = quoted(b"").unwrap_or_default();
        let block = match kind {
            Growing::Text => wire::ContentBlock::Text { text: empty },
            Growing::Thinking => wire::ContentBlock::Thinking { thinking: empty, signature: "" },
        };
        let index = self.begin(&block);
        let delta = match kind {
            Growing::Text => wire::Delta::Text { text: HOLE },
            Growing::Thinking => wire::Delta::Thinking { thinking: HOLE },
        };
        let mut event = BytesMut::new();
        put_delta(&mut event, index, delta);
        self.open = Some(Open { kind, index, more: Template::of(&event) });
    }

    fn close(&mut self) {
        let Some(Open { kind, index, .. }) = self.open.take() else { return };
        if kind == Growing::Thinking {
            put_delta(&mut self.out, index, wire::Delta::Signature { signature: SIGNATURE });
        }
        self.end_block(index);
    }

    fn end_block(&mut self, index: usize) {
        put(&mut self.out, "content_block_stop", &wire::BlockStop { r#type: "content_block_stop", index });
    }
}

fn put(out: &mut BytesMut, name: &str, event: &impl Serialize) {
    let json = serde_json::to_vec(event).expect("an event holds strings and numbers only");
    sse::named(out, name, &json);
}

fn put_delta(out: &mut BytesMut, index: usize, delta: wire::Delta<'_>) {
    put(out, "content_block_delta", &wire::BlockDelta { r#type: "content_block_delta", index, delta });
}

impl AnswerSink for Events {
    /// What was sent already keeps its name.
    fn default_model(&mut self, agent: &AgentName) {
        if self.fresh {
            agent.as_str().clone_into(&mut self.head.model);
            self.out.clear();
            self.start();
        }
    }

    fn text(&mut self, _: usize, escaped: &[u8]) {
        self.grow(Growing::Text, escaped);
    }

    fn thought(&mut self, _: usize, escaped: &[u8]) {
        if self.head.thoughts == Thoughts::Shown {
            self.grow(Growing::Thinking, escaped);
        }
    }

    fn refusal(&mut self, answer: usize, escaped: &[u8]) {
        self.text(answer, escaped);
    }

    fn call(&mut self, _: usize, _: usize, call: &ClientCall) {
        let empty = serde_json::value::RawValue::from_string("{}".to_owned()).unwrap_or_default();
        let (id, name) = (call.id.to_string(), call.tool.to_string());
        let index = self.begin(&wire::ContentBlock::ToolUse { id, name, input: empty });
        put_delta(&mut self.out, index, wire::Delta::Input { partial_json: arguments(call).get() });
        self.end_block(index);
    }

    fn stop_sequence(&mut self, _: usize, text: &str) {
        self.stop.sequence = Some(text.to_owned());
    }

    fn finish(&mut self, _: usize, finish: Finish) {
        self.stop.finish = Some(finish);
    }
}

impl StreamEncoder for Events {
    fn out(&mut self) -> &mut BytesMut {
        &mut self.out
    }

    fn end(&mut self, tokens: TokenCount) {
        self.close();
        let delta = wire::Stopped {
            stop_reason: self.stop.reason(),
            stop_sequence: self.stop.sequence.as_deref(),
            stop_details: self.stop.details(),
        };
        let delta = wire::MessageDelta { r#type: "message_delta", delta, usage: tokens.into() };
        put(&mut self.out, "message_delta", &delta);
        put(&mut self.out, "message_stop", &wire::Empty { r#type: "message_stop" });
    }

    fn fail(&mut self, failure: ExchangeError, request: &RequestId) {
        error::event(&mut self.out, &error::problem(failure), request);
    }

    fn keep_alive(&mut self) {
        put(&mut self.out, "ping", &wire::Empty { r#type: "ping" });
    }

    fn take(&mut self) -> Option<bytes::Bytes> {
        self.fresh = false;
        (!self.out.is_empty()).then(|| self.out.split().freeze())
    }
}
