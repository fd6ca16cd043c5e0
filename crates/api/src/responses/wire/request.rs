//! The body of `POST /v1/responses`.

use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;

use super::{Item, Tool, ToolChoice};
use crate::json::object::objects;
use crate::json::{AnyObject, OneOrMany, Raw, Skipped, Unknown, WordOr, field};

/// A request for an answer. Fields that are accepted without effect, and unknown ones, come back by name in the
/// response header `x-gembridge-ignored`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct CreateRequest<'a> {
    /// An agent, `agent/model`, a model's own id, or a mapped name; `GET /v1/models` lists them.
    #[serde(borrow)]
    pub model: Option<field::String<'a>>,
    /// A text, or items.
    #[schema(value_type = Option<Vec<Item>>)]
    pub input: Option<OneOrMany<'a, Item<'a>, 10_000>>,
    pub instructions: Option<field::String<'a>>,
    /// Tools that the client runs. A call of one ends the answer; the next request brings its result, and the
    /// agent goes on where it was.
    pub tools: Option<field::Vec<Tool<'a>, 256>>,
    /// `auto`, `none`, `required`, or the tools that may be called.
    #[schema(value_type = Option<AnyObject>)]
    pub tool_choice: Option<WordOr<'a, ToolChoice<'a>>>,
    /// `false`: one call in each answer.
    pub parallel_tool_calls: Option<bool>,
    pub text: Option<TextOptions<'a>>,
    pub stream: Option<bool>,
    /// Whether the response can be had again, and gone on with. `true` where it is missing.
    pub store: Option<bool>,
    /// Goes on after this response.
    pub previous_response_id: Option<field::String<'a>>,
    #[schema(value_type = Option<String>)]
    pub conversation: Option<WordOr<'a, ConversationName<'a>>>,
    pub background: Option<bool>,
    /// Ends the answer after about so many tokens, thoughts included: a character of ASCII counts as a quarter, any
    /// other as one.
    pub max_output_tokens: Option<u64>,
    /// Comes back as it is.
    #[schema(value_type = Option<AnyObject>)]
    pub metadata: Option<Raw<'a>>,
    /// Comes back as it is.
    pub prompt_cache_key: Option<field::String<'a>>,
    pub include: Option<field::Vec<field::String<'a>, 32>>,
    pub reasoning: Option<Reasoning<'a>>,
    /// Refused: there are no templates here.
    #[schema(value_type = Option<AnyObject>)]
    pub prompt: Option<Skipped>,
    /// Over a WebSocket, `false`: the input is kept, and nothing is said to it.
    pub generate: Option<bool>,
    /// Accepted and ignored.
    #[schema(value_type = Option<f64>)]
    pub temperature: Option<Skipped>,
    /// Accepted and ignored.
    #[schema(value_type = Option<f64>)]
    pub top_p: Option<Skipped>,
    /// Accepted and ignored.
    #[schema(value_type = Option<u64>)]
    pub top_logprobs: Option<Skipped>,
    /// Ignored unless it is `disabled`.
    pub truncation: Option<field::String<'a>>,
    /// Ignored unless it is `auto` or `default`.
    pub service_tier: Option<field::String<'a>>,
    /// Accepted and ignored.
    #[schema(value_type = Option<u64>)]
    pub max_tool_calls: Option<Skipped>,
    #[schema(value_type = Option<String>)]
    pub user: Option<Skipped>,
    pub safety_identifier: Option<field::String<'a>>,
    #[schema(value_type = Option<AnyObject>)]
    pub stream_options: Option<Skipped>,
    /// Frames of a WebSocket: `response.create`.
    #[serde(rename = "type")]
    pub kind: Option<field::String<'a>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct ConversationName<'a> {
    #[serde(borrow)]
    pub id: Option<field::String<'a>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct TextOptions<'a> {
    #[serde(borrow)]
    pub format: Option<TextFormat<'a>>,
    #[schema(value_type = Option<String>)]
    pub verbosity: Option<Skipped>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(remote = "Self")]
pub struct TextFormat<'a> {
    /// `text`, `json_object` or `json_schema`.
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<field::String<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<field::String<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AnyObject>)]
    pub schema: Option<Raw<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// Answers are checked in any case.
    pub strict: Option<bool>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
#[schema(as = ResponseReasoning)]
pub struct Reasoning<'a> {
    /// Accepted and ignored.
    #[serde(borrow)]
    pub effort: Option<field::String<'a>>,
    /// Thoughts are told as summaries in any case.
    pub summary: Option<field::String<'a>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

objects!(CreateRequest<'a>, ConversationName<'a>, TextOptions<'a>, TextFormat<'a>, Reasoning<'a>);

impl Serialize for TextFormat<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The derived function, which `remote` makes an inherent one.
        TextFormat::serialize(self, serializer)
    }
}
