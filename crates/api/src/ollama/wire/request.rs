//! The bodies of `POST /api/chat` and `POST /api/generate`.

use serde::Deserialize;

use crate::json::object::objects;
use crate::json::{OneOrMany, Raw, Skipped, Unknown, field};

/// A request for an answer: `messages` of a chat, or the `prompt` of a generation with its `system` and `images`.
#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct Ask<'a> {
    #[serde(borrow)]
    pub model: Option<field::String<'a>>,
    pub messages: Option<field::Vec<Message<'a>, 10_000>>,
    pub tools: Option<field::Vec<Tool<'a>, 256>>,
    pub prompt: Option<field::String<'a>>,
    pub system: Option<field::String<'a>>,
    pub images: Option<field::Vec<field::String<'a>, 64>>,
    pub suffix: Option<field::String<'a>>,
    pub width: Option<Skipped>,
    pub height: Option<Skipped>,
    /// Unlike elsewhere, true where it is missing.
    pub stream: Option<bool>,
    /// Nothing, `json`, or a schema.
    pub format: Option<Raw<'a>>,
    /// A switch, or a level.
    pub think: Option<Skipped>,
    pub options: Option<Options<'a>>,
    /// A number of seconds, or a time such as `5m`.
    pub keep_alive: Option<Raw<'a>>,
    #[serde(skip)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct Options<'a> {
    #[serde(borrow)]
    pub stop: Option<OneOrMany<'a, field::String<'a>, 16>>,
    /// How many tokens at most; below zero: no limit.
    pub num_predict: Option<i64>,
    #[serde(skip)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct Message<'a> {
    #[serde(borrow)]
    pub role: Option<field::String<'a>>,
    pub content: Option<field::String<'a>>,
    /// Base64 without a type.
    pub images: Option<field::Vec<field::String<'a>, 64>>,
    pub tool_calls: Option<field::Vec<Call<'a>, 256>>,
    pub tool_name: Option<field::String<'a>>,
    pub tool_call_id: Option<field::String<'a>>,
    /// What the model thought. It is not told again.
    pub thinking: Option<Skipped>,
    #[serde(skip)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct Call<'a> {
    #[serde(borrow)]
    pub id: Option<field::String<'a>>,
    #[serde(rename = "type")]
    pub kind: Option<Skipped>,
    pub function: Option<Function<'a>>,
    #[serde(skip)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct Function<'a> {
    #[serde(borrow)]
    pub name: Option<field::String<'a>>,
    /// An object.
    pub arguments: Option<Raw<'a>>,
    pub index: Option<Skipped>,
    #[serde(skip)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct Tool<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    pub function: Option<ToolFunction<'a>>,
    #[serde(skip)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct ToolFunction<'a> {
    #[serde(borrow)]
    pub name: Option<field::String<'a>>,
    pub description: Option<field::String<'a>>,
    pub parameters: Option<Raw<'a>>,
    #[serde(skip)]
    pub unknown: Unknown,
}

objects!(Ask<'a>, Options<'a>, Message<'a>, Call<'a>, Function<'a>, Tool<'a>, ToolFunction<'a>);
