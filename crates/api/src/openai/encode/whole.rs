//! An answer in one piece: the same pieces, kept until the end.

use serde_json::value::RawValue;

use super::{Head, Pieces};
use crate::openai::wire;

pub(in crate::openai) struct Wholes {
    head: Head,
    answers: Vec<Whole>,
}

/// The bodies of two JSON strings.
#[derive(Default)]
pub(in crate::openai) struct Whole {
    text: Vec<u8>,
    thought: Vec<u8>,
    reason: Option<wire::FinishReason>,
}

impl Wholes {
    pub(in crate::openai) fn new(head: Head, choices: usize) -> Self {
        Self { head, answers: std::iter::repeat_with(Whole::default).take(choices).collect() }
    }

    /// Another model answers than the one that was asked.
    pub(in crate::openai) fn rename(&mut self, model: &str) {
        model.clone_into(&mut self.head.model);
    }

    pub(in crate::openai) fn of(&mut self, index: usize) -> &mut Whole {
        &mut self.answers[index]
    }

    pub(in crate::openai) fn finish(&mut self, index: usize, reason: wire::FinishReason) {
        self.answers[index].reason = Some(reason);
    }

    /// The body of the response.
    pub(in crate::openai) fn encode(self, usage: Option<wire::Usage>) -> Result<Vec<u8>, serde_json::Error> {
        let mut texts = Vec::with_capacity(self.answers.len());
        for answer in self.answers {
            let thought = if answer.thought.is_empty() { None } else { Some(quoted(&answer.thought)?) };
            texts.push((quoted(&answer.text)?, thought, answer.reason.unwrap_or(wire::FinishReason::Stop)));
        }
        let choices = texts.iter().enumerate().map(|(index, (text, thought, finish_reason))| {
            let reasoning_content = thought.as_deref();
            let message = wire::Answer { role: "assistant", content: text, reasoning_content, refusal: None };
            wire::Choice { index, message, logprobs: None, finish_reason: *finish_reason }
        });
        serde_json::to_vec(&wire::Completion {
            id: &self.head.id,
            object: "chat.completion",
            created: self.head.created,
            model: &self.head.model,
            system_fingerprint: &self.head.system_fingerprint,
            choices: choices.collect(),
            usage,
        })
    }
}

/// The string whose body this is, checked once more as JSON.
fn quoted(escaped: &[u8]) -> Result<Box<RawValue>, serde_json::Error> {
    let mut text = String::with_capacity(escaped.len() + 2);
    text.push('"');
    text.push_str(&String::from_utf8_lossy(escaped));
    text.push('"');
    RawValue::from_string(text)
}

impl Pieces for Whole {
    fn text(&mut self, escaped: &[u8]) {
        self.text.extend_from_slice(escaped);
    }

    fn thought(&mut self, escaped: &[u8]) {
        self.thought.extend_from_slice(escaped);
    }
}
