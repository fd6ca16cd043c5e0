//! An answer in one piece: the same pieces, kept until the end.

use gembridge_core::exchange::{AnswerSink, Finish, TokenCount};
use gembridge_core::model::{AgentName, ClientCall};
use serde_json::value::RawValue;

use super::{Head, call_of, reason};
use crate::dialect::{WholeEncoder, quoted};
use crate::openai::decode::Wording;
use crate::openai::wire;

pub(in crate::openai) struct WholeBody {
    head: Head,
    answers: Vec<WholeAnswer>,
}

/// What stands around the texts, about.
const ENVELOPE: usize = 600;

/// The bodies of JSON strings, and what was called.
#[derive(Default)]
struct WholeAnswer {
    text: Vec<u8>,
    thought: Vec<u8>,
    refusal: Option<Vec<u8>>,
    calls: Vec<wire::CalledTool>,
    function_call: Option<wire::CalledFunction>,
    reason: Option<wire::FinishReason>,
}

impl WholeBody {
    pub(in crate::openai) fn new(head: Head, choices: usize) -> Self {
        Self { head, answers: std::iter::repeat_with(WholeAnswer::default).take(choices).collect() }
    }
}

impl WholeEncoder for WholeBody {
    fn encode(&mut self, tokens: TokenCount) -> serde_json::Result<Vec<u8>> {
        let texts = self.answers.iter().map(Texts::of).collect::<Result<Vec<_>, _>>()?;
        let choices = self.answers.iter().zip(&texts).enumerate().map(|(index, (answer, texts))| {
            let message = wire::Answer {
                role: "assistant",
                content: texts.text.as_deref(),
                reasoning_content: texts.thought.as_deref(),
                refusal: texts.refusal.as_deref(),
                tool_calls: &answer.calls,
                function_call: answer.function_call.as_ref(),
            };
            let finish_reason = answer.reason.unwrap_or(wire::FinishReason::Stop);
            wire::Choice { index, message, logprobs: None, finish_reason }
        });
        let mut body = Vec::with_capacity(ENVELOPE + self.answers.iter().map(WholeAnswer::len).sum::<usize>());
        let completion = wire::Completion {
            id: &self.head.id,
            object: "chat.completion",
            created: self.head.created,
            model: &self.head.model,
            system_fingerprint: &self.head.system_fingerprint,
            choices: choices.collect(),
            usage: tokens.into(),
        };
        serde_json::to_writer(&mut body, &completion)?;
        Ok(body)
    }
}

impl WholeAnswer {
    fn len(&self) -> usize {
        self.text.len() + self.thought.len() + self.refusal.as_ref().map_or(0, Vec::len)
    }
}

/// An answer's texts as JSON strings.
struct Texts {
    text: Option<Box<RawValue>>,
    thought: Option<Box<RawValue>>,
    refusal: Option<Box<RawValue>>,
}

impl Texts {
    fn of(answer: &WholeAnswer) -> Result<Self, serde_json::Error> {
        let is_text = answer.refusal.is_none() && answer.calls.is_empty() && answer.function_call.is_none();
        let some = |body: &[u8]| if body.is_empty() { Ok(None) } else { quoted(body).map(Some) };
        Ok(Self {
            text: if is_text { Some(quoted(&answer.text)?) } else { some(&answer.text)? },
            thought: some(&answer.thought)?,
            refusal: answer.refusal.as_deref().map(quoted).transpose()?,
        })
    }
}

impl AnswerSink for WholeBody {
    fn default_model(&mut self, agent: &AgentName) {
        agent.as_str().clone_into(&mut self.head.model);
    }

    fn text(&mut self, answer: usize, escaped: &[u8]) {
        self.answers[answer].text.extend_from_slice(escaped);
    }

    fn thought(&mut self, answer: usize, escaped: &[u8]) {
        self.answers[answer].thought.extend_from_slice(escaped);
    }

    fn refusal(&mut self, answer: usize, escaped: &[u8]) {
        self.answers[answer].refusal.get_or_insert_default().extend_from_slice(escaped);
    }

    fn call(&mut self, answer: usize, _: usize, call: &ClientCall) {
        let call = call_of(call);
        match self.head.wording {
            Wording::Tools => self.answers[answer].calls.push(call),
            Wording::Functions => self.answers[answer].function_call = Some(call.function),
        }
    }

    fn finish(&mut self, answer: usize, finish: Finish) {
        self.answers[answer].reason = Some(reason(finish, self.head.wording));
    }
}
