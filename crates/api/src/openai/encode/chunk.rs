//! An answer in chunks, as events of a stream. The hot path: the text is spliced between two halves of a chunk that
//! was serialised once.

use bytes::{BufMut as _, Bytes, BytesMut};
use gembridge_core::exchange::{AnswerSink, ExchangeError, Finish, TokenCount};
use gembridge_core::model::{AgentName, ClientCall, Text};

use super::{Head, call_of, reason};
use crate::dialect::{HOLE, StreamEncoder, Template};
use crate::identity::RequestId;
use crate::openai::decode::Wording;
use crate::openai::{error, wire};
use crate::sse;

/// Writes the chunks of all answers of a request.
pub(in crate::openai) struct Chunks {
    head: Head,
    usage: bool,
    templates: Vec<Templates>,
    out: BytesMut,
    /// Nothing was said or taken yet: only the speakers are named.
    fresh: bool,
}

/// The chunks of one answer that carry text.
struct Templates {
    text: Template,
    thought: Template,
}

impl Chunks {
    /// The first chunk of each answer names the speaker, before anything is said.
    pub(in crate::openai) fn new(head: Head, choices: usize, usage: bool) -> Self {
        let mut chunks = Self { head, usage, templates: Vec::new(), out: BytesMut::new(), fresh: true };
        chunks.open(choices);
        chunks
    }

    /// Another model answers than the one that was asked. What was sent already keeps its name.
    fn rename(&mut self, model: &str) {
        model.clone_into(&mut self.head.model);
        let choices = self.templates.len();
        if self.fresh {
            self.out.clear();
            self.open(choices);
        } else {
            self.templates = (0..choices).map(|index| self.templates_of(index)).collect();
        }
    }

    fn open(&mut self, choices: usize) {
        self.templates = (0..choices).map(|index| self.templates_of(index)).collect();
        for index in 0..choices {
            let first = wire::Delta { role: Some("assistant"), content: Some(""), ..wire::Delta::default() };
            let first = self.chunk(index, first, None);
            self.out.put_slice(&first);
        }
    }

    fn templates_of(&self, index: usize) -> Templates {
        let text = wire::Delta { content: Some(HOLE), ..wire::Delta::default() };
        let thought = wire::Delta { reasoning_content: Some(HOLE), ..wire::Delta::default() };
        Templates { text: self.template(index, text), thought: self.template(index, thought) }
    }

    fn chunk(&self, index: usize, delta: wire::Delta<'_>, finish_reason: Option<wire::FinishReason>) -> Vec<u8> {
        let choice = wire::ChunkChoice { index, delta, logprobs: None, finish_reason };
        let usage = if self.usage { wire::ChunkUsage::NotYet } else { wire::ChunkUsage::Unasked };
        event(&self.wire(vec![choice], usage))
    }

    fn template(&self, index: usize, delta: wire::Delta<'_>) -> Template {
        Template::of(&self.chunk(index, delta, None))
    }

    fn wire<'a>(&'a self, choices: Vec<wire::ChunkChoice<'a>>, usage: wire::ChunkUsage) -> wire::CompletionChunk<'a> {
        wire::CompletionChunk {
            id: &self.head.id,
            object: "chat.completion.chunk",
            created: self.head.created,
            model: &self.head.model,
            system_fingerprint: &self.head.system_fingerprint,
            choices,
            usage,
        }
    }
}

fn event(chunk: &wire::CompletionChunk<'_>) -> Vec<u8> {
    sse::json(chunk).expect("a chunk holds strings and numbers only")
}

impl Chunks {
    /// A chunk of its own: what is not text comes once, and is not worth a template.
    fn put(&mut self, index: usize, delta: wire::Delta<'_>) {
        self.fresh = false;
        let chunk = self.chunk(index, delta, None);
        self.out.put_slice(&chunk);
    }
}

impl AnswerSink for Chunks {
    fn default_model(&mut self, agent: &AgentName) {
        self.rename(agent.as_str());
    }

    fn text(&mut self, answer: usize, escaped: &[u8]) {
        self.fresh = false;
        self.templates[answer].text.fill(escaped, &mut self.out);
    }

    fn thought(&mut self, answer: usize, escaped: &[u8]) {
        self.fresh = false;
        self.templates[answer].thought.fill(escaped, &mut self.out);
    }

    fn refusal(&mut self, answer: usize, escaped: &[u8]) {
        let text = Text::escaped(Bytes::copy_from_slice(escaped));
        self.put(answer, wire::Delta { refusal: Some(&text.to_str()), ..wire::Delta::default() });
    }

    fn call(&mut self, answer: usize, number: usize, call: &ClientCall) {
        let call = wire::CalledTool { index: Some(number), ..call_of(call) };
        match self.head.wording {
            Wording::Tools => self.put(answer, wire::Delta { tool_calls: &[call], ..wire::Delta::default() }),
            Wording::Functions => {
                self.put(answer, wire::Delta { function_call: Some(&call.function), ..wire::Delta::default() });
            }
        }
    }

    fn finish(&mut self, answer: usize, finish: Finish) {
        self.fresh = false;
        let last = self.chunk(answer, wire::Delta::default(), Some(reason(finish, self.head.wording)));
        self.out.put_slice(&last);
    }
}

impl StreamEncoder for Chunks {
    fn out(&mut self) -> &mut BytesMut {
        &mut self.out
    }

    fn end(&mut self, tokens: TokenCount) {
        if self.usage {
            let last = event(&self.wire(Vec::new(), wire::ChunkUsage::Sum(tokens.into())));
            self.out.put_slice(&last);
        }
        sse::data(&mut self.out, b"[DONE]");
    }

    fn fail(&mut self, failure: ExchangeError, request: &RequestId) {
        error::event(&mut self.out, &error::problem(failure), request);
    }

    fn keep_alive(&mut self) {
        self.out.put_slice(&sse::KEEP_ALIVE);
    }

    fn take(&mut self) -> Option<Bytes> {
        self.fresh = false;
        (!self.out.is_empty()).then(|| self.out.split().freeze())
    }
}
