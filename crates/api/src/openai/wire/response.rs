//! Answers: whole, and in chunks.

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
pub struct Completion<'a> {
    pub id: &'a str,
    /// `chat.completion`
    pub object: &'static str,
    pub created: u64,
    pub model: &'a str,
    pub system_fingerprint: &'a str,
    pub choices: Vec<Choice<'a>>,
    /// What the agent reports. Where it reports nothing: our own count, by the measure of `max_tokens`.
    pub usage: Usage,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Choice<'a> {
    pub index: usize,
    pub message: Answer<'a>,
    #[schema(value_type = Option<Object>)]
    pub logprobs: Option<()>,
    pub finish_reason: FinishReason,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Answer<'a> {
    /// `assistant`
    pub role: &'static str,
    /// Null beside calls, and in a refusal.
    #[schema(value_type = Option<String>)]
    pub content: Option<&'a RawValue>,
    /// The agent's thoughts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub reasoning_content: Option<&'a RawValue>,
    #[schema(value_type = Option<String>)]
    pub refusal: Option<&'a RawValue>,
    /// Tools of the client that the agent waits for.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub tool_calls: &'a [CalledTool],
    /// The same for older clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function_call: Option<&'a CalledFunction>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct CalledTool {
    /// Only in chunks: which of the calls this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    pub id: String,
    /// `function`
    pub r#type: &'static str,
    pub function: CalledFunction,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct CalledFunction {
    pub name: String,
    /// JSON.
    pub arguments: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct CompletionChunk<'a> {
    pub id: &'a str,
    /// `chat.completion.chunk`
    pub object: &'static str,
    pub created: u64,
    pub model: &'a str,
    pub system_fingerprint: &'a str,
    pub choices: Vec<ChunkChoice<'a>>,
    /// Only in a stream that asked for it: null in every chunk but the last.
    #[serde(skip_serializing_if = "ChunkUsage::is_unasked")]
    #[schema(value_type = Option<Usage>)]
    pub usage: ChunkUsage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ChunkUsage {
    #[serde(skip)]
    Unasked,
    NotYet,
    Sum(Usage),
}

impl ChunkUsage {
    fn is_unasked(&self) -> bool {
        *self == Self::Unasked
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub struct ChunkChoice<'a> {
    pub index: usize,
    pub delta: Delta<'a>,
    #[schema(value_type = Option<Object>)]
    pub logprobs: Option<()>,
    pub finish_reason: Option<FinishReason>,
}

#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub tool_calls: &'a [CalledTool],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function_call: Option<&'a CalledFunction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    Stop,
    Length,
    ContentFilter,
    ToolCalls,
    FunctionCall,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Usage {
    pub prompt_tokens: u64,
    /// Thoughts included.
    pub completion_tokens: u64,
    pub total_tokens: u64,
    pub prompt_tokens_details: PromptTokens,
    pub completion_tokens_details: CompletionTokens,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct PromptTokens {
    pub cached_tokens: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct CompletionTokens {
    pub reasoning_tokens: u64,
}
