//! Answers in this dialect's words: in chunks as they come, or whole.

mod chunk;
mod whole;

#[cfg(test)]
mod properties;

pub(super) use chunk::Chunks;
pub(super) use whole::WholeBody;

use std::sync::Arc;

use gembridge_core::exchange::{Finish, TokenCount};
use gembridge_core::model::ClientCall;

use super::decode::Wording;
use super::wire;

/// What is the same in every chunk of an answer.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub id: String,
    /// UNIX time in seconds.
    pub created: u64,
    pub model: String,
    pub system_fingerprint: Arc<str>,
    pub wording: Wording,
}

fn call_of(call: &ClientCall) -> wire::CalledTool {
    let arguments = String::from_utf8_lossy(&call.arguments.0).into_owned();
    let function = wire::CalledFunction { name: call.tool.to_string(), arguments };
    wire::CalledTool { index: None, id: call.id.to_string(), r#type: "function", function }
}

fn reason(finish: Finish, wording: Wording) -> wire::FinishReason {
    match (finish, wording) {
        (Finish::Stop, _) => wire::FinishReason::Stop,
        (Finish::Length, _) => wire::FinishReason::Length,
        (Finish::ContentFilter, _) => wire::FinishReason::ContentFilter,
        (Finish::ToolCalls, Wording::Tools) => wire::FinishReason::ToolCalls,
        (Finish::ToolCalls, Wording::Functions) => wire::FinishReason::FunctionCall,
    }
}

impl From<TokenCount> for wire::Usage {
    fn from(tokens: TokenCount) -> Self {
        Self {
            prompt_tokens: tokens.input,
            completion_tokens: tokens.output,
            total_tokens: tokens.total(),
            prompt_tokens_details: wire::PromptTokens { cached_tokens: tokens.cached },
            completion_tokens_details: wire::CompletionTokens { reasoning_tokens: tokens.reasoning },
        }
    }
}
