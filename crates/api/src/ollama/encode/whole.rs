//! An answer in one piece: the same pieces, kept until the end.

use gembridge_core::exchange::{AnswerSink, Finish, TokenCount};
use gembridge_core::model::{AgentName, ClientCall};

use super::{Head, call_of, reason};
use crate::dialect::{Thoughts, WholeEncoder, quoted};
use crate::ollama::wire;

pub(in crate::ollama) struct WholeAnswer {
    head: Head,
    text: Vec<u8>,
    thought: Vec<u8>,
    calls: Vec<wire::Called>,
    reason: &'static str,
}

impl WholeAnswer {
    pub(in crate::ollama) fn new(head: Head) -> Self {
        Self { head, text: Vec::new(), thought: Vec::new(), calls: Vec::new(), reason: "stop" }
    }
}

impl WholeEncoder for WholeAnswer {
    fn encode(&mut self, tokens: TokenCount) -> serde_json::Result<Vec<u8>> {
        let text = quoted(&self.text)?;
        let thought = if self.thought.is_empty() { None } else { Some(quoted(&self.thought)?) };
        serde_json::to_vec(&wire::Line {
            done: true,
            done_reason: Some(self.reason),
            counts: Some(self.head.clock.counts(tokens)),
            ..self.head.line(&text, thought.as_deref(), &self.calls)
        })
    }
}

impl AnswerSink for WholeAnswer {
    fn default_model(&mut self, _: &AgentName) {}

    fn text(&mut self, _: usize, escaped: &[u8]) {
        self.head.clock.said();
        self.text.extend_from_slice(escaped);
    }

    fn thought(&mut self, _: usize, escaped: &[u8]) {
        self.head.clock.said();
        if self.head.thoughts == Thoughts::Shown {
            self.thought.extend_from_slice(escaped);
        }
    }

    fn refusal(&mut self, answer: usize, escaped: &[u8]) {
        self.text(answer, escaped);
    }

    fn call(&mut self, _: usize, number: usize, call: &ClientCall) {
        self.calls.push(call_of(number, call));
    }

    fn finish(&mut self, _: usize, finish: Finish) {
        self.reason = reason(finish);
    }
}
