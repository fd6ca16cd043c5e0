//! Answers in this dialect's words: in events as they come, or whole.

mod events;
mod whole;

#[cfg(test)]
mod properties;

pub(super) use events::Events;
pub(super) use whole::WholeBody;

use gembridge_core::exchange::{Finish, TokenCount};

use super::wire;
use crate::dialect::Thoughts;

/// What is known of an answer before anything is said.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub id: String,
    pub model: String,
    /// About how much the model reads.
    pub input_tokens: u64,
    pub thoughts: Thoughts,
}

impl Head {
    /// The message before anything is said in it.
    fn message(&self) -> wire::WholeMessage<'_> {
        wire::WholeMessage {
            id: &self.id,
            r#type: "message",
            role: "assistant",
            model: &self.model,
            content: &[],
            stop_reason: None,
            stop_sequence: None,
            stop_details: None,
            usage: wire::Usage { input_tokens: self.input_tokens, ..wire::Usage::default() },
        }
    }
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
