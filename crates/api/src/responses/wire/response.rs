//! Responses, as they are written: whole, and within events.

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::json::AnyObject;

/// Every field is there, whatever its value: clients check responses by a schema.
#[derive(Serialize, ToSchema)]
pub struct ResponseObject<'a> {
    pub id: &'a str,
    /// `response`.
    pub object: &'static str,
    /// UNIX time in seconds.
    pub created_at: u64,
    pub completed_at: Option<u64>,
    /// `queued`, `in_progress`, `completed`, `incomplete`, `failed` or `cancelled`.
    pub status: &'static str,
    pub incomplete_details: Option<IncompleteDetails>,
    pub model: &'a str,
    pub previous_response_id: Option<&'a str>,
    pub instructions: Option<&'a str>,
    pub output: &'a [OutputItem],
    pub error: Option<ErrorBody<'a>>,
    #[schema(value_type = Vec<AnyObject>)]
    pub tools: &'a RawValue,
    #[schema(value_type = AnyObject)]
    pub tool_choice: &'a RawValue,
    pub truncation: &'static str,
    pub parallel_tool_calls: bool,
    pub text: TextEcho<'a>,
    pub top_p: f64,
    pub presence_penalty: f64,
    pub frequency_penalty: f64,
    pub top_logprobs: u64,
    pub temperature: f64,
    pub reasoning: ReasoningOptions<'a>,
    pub usage: Option<Usage>,
    pub max_output_tokens: Option<u64>,
    pub max_tool_calls: Option<u64>,
    pub store: bool,
    pub background: bool,
    pub service_tier: &'static str,
    #[schema(value_type = AnyObject)]
    pub metadata: &'a RawValue,
    pub safety_identifier: Option<&'a str>,
    pub prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationEcho<'a>>,
}

#[derive(Serialize, ToSchema)]
pub struct ConversationEcho<'a> {
    pub id: &'a str,
}

#[derive(Clone, Copy, Serialize, ToSchema)]
pub struct IncompleteDetails {
    /// `max_output_tokens` or `content_filter`.
    pub reason: &'static str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ResponseError)]
pub struct ErrorBody<'a> {
    pub code: &'a str,
    pub message: &'a str,
}

#[derive(Serialize, ToSchema)]
pub struct TextEcho<'a> {
    #[schema(value_type = AnyObject)]
    pub format: &'a RawValue,
}

#[derive(Serialize, ToSchema)]
pub struct ReasoningOptions<'a> {
    pub effort: Option<&'a str>,
    pub summary: Option<&'a str>,
}

#[derive(Clone, Copy, Serialize, ToSchema)]
#[schema(as = ResponseUsage)]
pub struct Usage {
    pub input_tokens: u64,
    pub input_tokens_details: InputTokensDetails,
    pub output_tokens: u64,
    pub output_tokens_details: OutputTokensDetails,
    pub total_tokens: u64,
}

#[derive(Clone, Copy, Serialize, ToSchema)]
pub struct InputTokensDetails {
    pub cached_tokens: u64,
}

#[derive(Clone, Copy, Serialize, ToSchema)]
pub struct OutputTokensDetails {
    pub reasoning_tokens: u64,
}

#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputItem {
    Message(MessageItem),
    Reasoning(ReasoningItem),
    FunctionCall(CallItem),
    CustomToolCall(CallItem),
}

#[derive(Serialize, ToSchema)]
pub struct MessageItem {
    pub id: String,
    /// `in_progress`, `completed` or `incomplete`.
    pub status: &'static str,
    pub role: &'static str,
    pub content: Vec<OutputPart>,
}

#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputPart {
    OutputText {
        #[schema(value_type = String)]
        text: Box<RawValue>,
        #[schema(value_type = Vec<AnyObject>)]
        annotations: [(); 0],
        #[schema(value_type = Vec<AnyObject>)]
        logprobs: [(); 0],
    },
    Refusal {
        #[schema(value_type = String)]
        refusal: Box<RawValue>,
    },
    /// Of thoughts.
    SummaryText {
        #[schema(value_type = String)]
        text: Box<RawValue>,
    },
}

/// What the agent thought on its way.
#[derive(Serialize, ToSchema)]
pub struct ReasoningItem {
    pub id: String,
    pub summary: Vec<OutputPart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted_content: Option<String>,
}

/// A call of a function has `arguments`, one of a custom tool `input`.
#[derive(Serialize, ToSchema)]
pub struct CallItem {
    pub id: String,
    pub call_id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    pub status: &'static str,
}
