//! Answers in this dialect's words: in lines as they come, or whole.

mod lines;
mod whole;

#[cfg(test)]
mod properties;

pub(super) use lines::Lines;
pub(super) use whole::WholeAnswer;

use std::time::{Duration, Instant};

use gembridge_core::exchange::{Finish, TokenCount};
use gembridge_core::model::ClientCall;
use serde_json::value::RawValue;

use super::wire;
use crate::dialect::{Thoughts, arguments, quoted};

/// What is the same in every line of an answer.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// As the client wrote it.
    pub model: String,
    pub created_at: String,
    pub shape: Shape,
    pub thoughts: Thoughts,
    pub clock: Clock,
}

/// Where the text stands in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// In a `message`.
    Chat,
    /// In `response`.
    Generate,
}

/// When what happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    received: Instant,
    first: Option<Instant>,
}

impl Clock {
    pub(super) fn started() -> Self {
        Self { received: Instant::now(), first: None }
    }

    /// Something was said.
    fn said(&mut self) {
        self.first.get_or_insert_with(Instant::now);
    }

    fn counts(&self, tokens: TokenCount) -> wire::Counts {
        let now = Instant::now();
        let first = self.first.unwrap_or(now);
        wire::Counts {
            total_duration: nanos(now.duration_since(self.received)),
            load_duration: 0,
            prompt_eval_count: tokens.input,
            prompt_eval_duration: nanos(first.duration_since(self.received)),
            eval_count: tokens.output,
            eval_duration: nanos(now.duration_since(first)),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Head {
    /// One line. The texts are JSON strings.
    fn line<'a>(
        &'a self,
        said: &'a RawValue,
        thought: Option<&'a RawValue>,
        calls: &'a [wire::Called],
    ) -> wire::Line<'a> {
        let line = wire::Line { model: &self.model, created_at: &self.created_at, ..wire::Line::default() };
        match self.shape {
            Shape::Chat => {
                let message = wire::Said { role: "assistant", content: said, thinking: thought, tool_calls: calls };
                wire::Line { message: Some(message), ..line }
            }
            Shape::Generate => wire::Line { response: Some(said), thinking: thought, ..line },
        }
    }

    /// The last line, with nothing said in it.
    pub(super) fn last(&self, reason: &'static str, counts: Option<wire::Counts>) -> Vec<u8> {
        let empty = quoted(b"").unwrap_or_default();
        let line = wire::Line { done: true, done_reason: Some(reason), counts, ..self.line(&empty, None, &[]) };
        serde_json::to_vec(&line).expect("a line holds strings and numbers only")
    }
}

fn call_of(number: usize, call: &ClientCall) -> wire::Called {
    let function = wire::CalledFunction { index: number, name: call.tool.to_string(), arguments: arguments(call) };
    wire::Called { id: call.id.to_string(), function }
}

fn reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::ContentFilter | Finish::ToolCalls => "stop",
        Finish::Length => "length",
    }
}
