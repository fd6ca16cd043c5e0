//! Answers in this dialect's words: in events as they come, or whole.

mod events;
mod whole;

#[cfg(test)]
mod properties;

pub(super) use events::Events;
pub(super) use whole::WholeBody;

use gembridge_core::exchange::{Finish, TokenCount};
use gembridge_core::model::ClientCall;
use serde_json::value::RawValue;

use super::wire;

/// What is known of an answer before anything is said.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub id: String,
    pub model: String,
    /// About how much the model reads.
    pub input_tokens: u64,
    pub thoughts: Thoughts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thoughts {
    Shown,
    LeftOut,
}

/// Of the blocks that grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growing {
    Text,
    Thinking,
}

/// Stands for the proof that thoughts are the model's own. Clients give it back with them, and it is not looked at.
const SIGNATURE: &str = "bm90IHNpZ25lZA==";

/// How an answer ended.
#[derive(Debug, Default)]
struct Stop {
    finish: Option<Finish>,
    sequence: Option<String>,
}

impl Stop {
    fn reason(&self) -> &'static str {
        match self.finish {
            Some(Finish::Stop) | None if self.sequence.is_some() => "stop_sequence",
            Some(Finish::Stop) | None => "end_turn",
            Some(Finish::Length) => "max_tokens",
            Some(Finish::ContentFilter) => "refusal",
            Some(Finish::ToolCalls) => "tool_use",
        }
    }

    fn details(&self) -> Option<wire::StopDetails> {
        let refusal = wire::StopDetails { r#type: "refusal", category: None, explanation: None };
        (self.finish == Some(Finish::ContentFilter)).then_some(refusal)
    }
}

impl From<TokenCount> for wire::Usage {
    fn from(tokens: TokenCount) -> Self {
        Self {
            input_tokens: tokens.input.saturating_sub(tokens.cached),
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: tokens.cached,
            output_tokens: tokens.output,
        }
    }
}

fn arguments(call: &ClientCall) -> Box<RawValue> {
    let json = String::from_utf8_lossy(&call.arguments.0).into_owned();
    // What is no JSON is no call that a client could run.
    let sound = RawValue::from_string(json).or_else(|_| RawValue::from_string("{}".to_owned()));
    sound.unwrap_or_default()
}

/// The string whose body this is, checked once more as JSON.
fn quoted(escaped: &[u8]) -> Result<Box<RawValue>, serde_json::Error> {
    RawValue::from_string(format!("\"{}\"", String::from_utf8_lossy(escaped)))
}
