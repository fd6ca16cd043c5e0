//! The body of `POST /v1/chat/completions`.

use serde::Deserialize;
use utoipa::ToSchema;

use super::tool::{FunctionChoiceValue, ToolChoiceValue};
use super::{Function, Message, ResponseFormat, Tool, ToolChoice, ToolName};
use crate::json::object::objects;
use crate::json::{AnyObject, OneOrMany, Skipped, Unknown, WordOr, field};

/// A request for an answer. Fields that are accepted without effect, and unknown ones, come back by name in the
/// response header `x-gembridge-ignored`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct ChatRequest<'a> {
    /// An agent, `agent/model`, a model's own id, or a mapped name; `GET /v1/models` lists them.
    #[serde(borrow)]
    pub model: Option<field::String<'a>>,
    pub messages: Option<field::Vec<Message<'a>, 10_000>>,
    pub stream: Option<bool>,
    pub stream_options: Option<StreamOptions>,
    /// How many answers, at most 8; each from a session of its own.
    pub n: Option<u64>,
    /// Up to 4 texts that end the answer before they appear.
    #[schema(value_type = Option<Vec<String>>)]
    pub stop: Option<OneOrMany<'a, field::String<'a>, 4>>,
    /// Ends the answer after about so many tokens: a character of ASCII counts as a quarter, any other as one.
    pub max_tokens: Option<u64>,
    /// As `max_tokens`, thoughts included.
    pub max_completion_tokens: Option<u64>,
    /// Tools that the client runs. A call of one ends the answer; the next request brings its result, and the
    /// agent goes on where it was.
    pub tools: Option<field::Vec<Tool<'a>, 256>>,
    /// What older clients have instead of `tools`.
    pub functions: Option<field::Vec<Function<'a>, 256>>,
    /// `auto`, `none`, `required`, or the tools that may be called.
    #[schema(value_type = Option<ToolChoiceValue>)]
    pub tool_choice: Option<WordOr<'a, ToolChoice<'a>>>,
    /// `auto`, `none`, or the one to call.
    #[schema(value_type = Option<FunctionChoiceValue>)]
    pub function_call: Option<WordOr<'a, ToolName<'a>>>,
    /// `false`: one call in each answer.
    pub parallel_tool_calls: Option<bool>,
    pub response_format: Option<ResponseFormat<'a>>,
    /// Refused: agents do not report them.
    #[schema(value_type = Option<bool>)]
    pub logprobs: Option<Skipped>,
    /// Refused: agents do not report them.
    #[schema(value_type = Option<u64>)]
    pub top_logprobs: Option<Skipped>,
    /// `text` only.
    pub modalities: Option<field::Vec<field::String<'a>, 8>>,
    #[schema(value_type = Option<String>)]
    pub user: Option<Skipped>,
    #[schema(value_type = Option<AnyObject>)]
    pub metadata: Option<Skipped>,
    #[schema(value_type = Option<bool>)]
    pub store: Option<Skipped>,
    #[schema(value_type = Option<String>)]
    pub prompt_cache_key: Option<Skipped>,
    #[schema(value_type = Option<String>)]
    pub safety_identifier: Option<Skipped>,
    /// Ignored unless it is `auto` or `default`.
    pub service_tier: Option<field::String<'a>>,
    /// Accepted and ignored.
    #[schema(value_type = Option<f64>)]
    pub temperature: Option<Skipped>,
    /// Accepted and ignored.
    #[schema(value_type = Option<f64>)]
    pub top_p: Option<Skipped>,
    /// Accepted and ignored.
    #[schema(value_type = Option<i64>)]
    pub seed: Option<Skipped>,
    /// Accepted and ignored.
    #[schema(value_type = Option<f64>)]
    pub presence_penalty: Option<Skipped>,
    /// Accepted and ignored.
    #[schema(value_type = Option<f64>)]
    pub frequency_penalty: Option<Skipped>,
    /// Accepted and ignored.
    #[schema(value_type = Option<AnyObject>)]
    pub logit_bias: Option<Skipped>,
    /// Accepted and ignored.
    #[schema(value_type = Option<String>)]
    pub reasoning_effort: Option<Skipped>,
    /// Accepted and ignored.
    #[schema(value_type = Option<String>)]
    pub verbosity: Option<Skipped>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct StreamOptions {
    pub include_usage: Option<bool>,
    #[schema(value_type = Option<bool>)]
    pub include_obfuscation: Option<Skipped>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

objects!(ChatRequest<'a>, StreamOptions);
