//! Answers: whole, and in events. Each event says its type once more in its data.

use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Debug, Serialize)]
pub struct WholeMessage<'a> {
    pub id: &'a str,
    /// `message`
    pub r#type: &'static str,
    /// `assistant`
    pub role: &'static str,
    pub model: &'a str,
    pub content: &'a [ContentBlock],
    pub stop_reason: Option<&'static str>,
    pub stop_sequence: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_details: Option<StopDetails>,
    pub usage: Usage,
}

/// Why an answer was refused, as far as an agent says it: not at all.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StopDetails {
    /// `refusal`
    pub r#type: &'static str,
    pub category: Option<&'static str>,
    pub explanation: Option<&'static str>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    Text { text: Box<RawValue> },
    Thinking { thinking: Box<RawValue>, signature: &'static str },
    ToolUse { id: String, name: String, input: Box<RawValue> },
}

/// What was read from a cache is not part of `input_tokens`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    pub input_tokens: u64,
    pub cache_creation_input_tokens: u64,
    pub cache_read_input_tokens: u64,
    pub output_tokens: u64,
}

#[derive(Debug, Serialize)]
pub struct Counted {
    pub input_tokens: u64,
}

#[derive(Debug, Serialize)]
pub struct MessageStart<'a> {
    pub r#type: &'static str,
    pub message: WholeMessage<'a>,
}

#[derive(Debug, Serialize)]
pub struct BlockStart<'a> {
    pub r#type: &'static str,
    pub index: usize,
    pub content_block: &'a ContentBlock,
}

#[derive(Debug, Serialize)]
pub struct BlockDelta<'a> {
    pub r#type: &'static str,
    pub index: usize,
    pub delta: Delta<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Delta<'a> {
    #[serde(rename = "text_delta")]
    Text { text: &'a str },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: &'a str },
    #[serde(rename = "signature_delta")]
    Signature { signature: &'a str },
    #[serde(rename = "input_json_delta")]
    Input { partial_json: &'a str },
}

#[derive(Debug, Serialize)]
pub struct BlockStop {
    pub r#type: &'static str,
    pub index: usize,
}

#[derive(Debug, Serialize)]
pub struct MessageDelta<'a> {
    pub r#type: &'static str,
    pub delta: Stopped<'a>,
    pub usage: Usage,
}

#[derive(Debug, Serialize)]
pub struct Stopped<'a> {
    pub stop_reason: &'static str,
    pub stop_sequence: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_details: Option<StopDetails>,
}

/// An event that says nothing but its type.
#[derive(Debug, Serialize)]
pub struct Empty {
    pub r#type: &'static str,
}
