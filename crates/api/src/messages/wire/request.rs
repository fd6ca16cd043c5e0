//! The bodies of `POST /v1/messages` and of its count of tokens.

use serde::Deserialize;

use crate::json::object::objects;
use crate::json::{OneOrMany, Raw, Skipped, Unknown, WordOr, field};

/// A string, or at most 1024 blocks.
pub type Content<'a> = OneOrMany<'a, Block<'a>, 1_024>;

#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct CreateRequest<'a> {
    #[serde(borrow)]
    pub model: Option<field::String<'a>>,
    pub messages: Option<field::Vec<Message<'a>, 10_000>>,
    pub system: Option<Content<'a>>,
    pub max_tokens: Option<u64>,
    pub stream: Option<bool>,
    pub stop_sequences: Option<field::Vec<field::String<'a>, 16>>,
    pub tools: Option<field::Vec<Tool<'a>, 512>>,
    pub tool_choice: Option<ToolChoice<'a>>,
    pub output_config: Option<OutputConfig<'a>>,
    /// What older clients have instead of `output_config.format`.
    pub output_format: Option<Format<'a>>,
    pub thinking: Option<Thinking<'a>>,
    pub thread: Option<Thread<'a>>,
    #[serde(skip)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct Message<'a> {
    #[serde(borrow)]
    pub role: Option<field::String<'a>>,
    pub content: Option<Content<'a>>,
    #[serde(skip)]
    pub unknown: Unknown,
}

/// A block of any kind; which fields it has depends on its type.
#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    pub text: Option<field::String<'a>>,
    /// Of images and documents; of a result of a search its address.
    pub source: Option<WordOr<'a, BlockSource<'a>>>,
    pub title: Option<field::String<'a>>,
    /// Of a call.
    pub id: Option<field::String<'a>>,
    pub name: Option<field::String<'a>>,
    pub input: Option<Raw<'a>>,
    /// Of a result of a call.
    pub tool_use_id: Option<field::String<'a>>,
    pub content: Option<Content<'a>>,
    pub is_error: Option<bool>,
    /// Of a reference to a tool.
    pub tool_name: Option<field::String<'a>>,
    /// Thoughts are not told again.
    pub thinking: Option<Skipped>,
    pub signature: Option<Skipped>,
    pub data: Option<Skipped>,
    #[serde(skip)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct BlockSource<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    pub media_type: Option<field::String<'a>>,
    pub data: Option<field::String<'a>>,
    pub content: Option<Content<'a>>,
    pub url: Option<Skipped>,
    pub file_id: Option<Skipped>,
    #[serde(skip)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct Tool<'a> {
    /// Missing or `custom` for a tool of the client's own.
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    pub name: Option<field::String<'a>>,
    pub description: Option<field::String<'a>>,
    pub input_schema: Option<Raw<'a>>,
    pub strict: Option<bool>,
    #[serde(skip)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct ToolChoice<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    pub name: Option<field::String<'a>>,
    pub disable_parallel_tool_use: Option<bool>,
    #[serde(skip)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct OutputConfig<'a> {
    #[serde(borrow)]
    pub format: Option<Format<'a>>,
    #[serde(skip)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct Format<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    pub schema: Option<Raw<'a>>,
    #[serde(skip)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct Thinking<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    pub display: Option<field::String<'a>>,
    #[serde(skip)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct Thread<'a> {
    /// `create` or `continue`.
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    pub previous_message_id: Option<field::String<'a>>,
    #[serde(skip)]
    pub unknown: Unknown,
}

objects!(
    CreateRequest<'a>,
    Message<'a>,
    Block<'a>,
    BlockSource<'a>,
    Tool<'a>,
    ToolChoice<'a>,
    OutputConfig<'a>,
    Format<'a>,
    Thinking<'a>,
    Thread<'a>
);
