//! Lines of `--output-format stream-json` as Gemini CLI and Claude Code write them: tolerant, and no more than is read.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// What a line is.
#[derive(Deserialize)]
pub(super) struct Kind {
    #[serde(rename = "type")]
    pub kind: String,
    pub session_id: Option<String>,
}

/// A line of Gemini CLI.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum GeminiLine {
    Init {
        model: Option<String>,
    },
    Message {
        role: String,
        #[serde(default)]
        content: String,
    },
    ToolUse {
        tool_name: String,
        tool_id: String,
        #[serde(default)]
        parameters: Value,
    },
    ToolResult {
        tool_id: String,
        #[serde(default)]
        status: String,
        output: Option<String>,
        error: Option<Told>,
    },
    Error {
        #[serde(default)]
        message: String,
    },
    Result {
        #[serde(default)]
        status: String,
        error: Option<Told>,
        stats: Option<GeminiStats>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(super) struct Told {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    #[serde(default)]
    pub message: String,
}

#[derive(Deserialize)]
pub(super) struct GeminiStats {
    pub total_tokens: Option<u64>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cached: Option<u64>,
}

/// A line of Claude Code.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ClaudeLine {
    System {
        subtype: Option<String>,
        model: Option<String>,
    },
    Assistant {
        message: ClaudeMessage,
        parent_tool_use_id: Option<String>,
    },
    User {
        message: ClaudeMessage,
        parent_tool_use_id: Option<String>,
    },
    StreamEvent {
        event: ClaudeEvent,
        parent_tool_use_id: Option<String>,
    },
    Result {
        subtype: Option<String>,
        #[serde(default)]
        is_error: bool,
        result: Option<String>,
        #[serde(default)]
        errors: Vec<Value>,
        stop_reason: Option<String>,
        usage: Option<ClaudeUsage>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(super) struct ClaudeMessage {
    /// A text, or blocks.
    #[serde(default)]
    pub content: Value,
}

#[derive(Deserialize)]
pub(super) struct ClaudeEvent {
    pub delta: Option<ClaudeDelta>,
}

#[derive(Deserialize)]
pub(super) struct ClaudeDelta {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub text: Option<String>,
    pub thinking: Option<String>,
}

#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
pub(super) struct ClaudeUsage {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_creation_input_tokens: Option<u64>,
    pub cache_read_input_tokens: Option<u64>,
}

/// Whether a line is JSON at all: programs write other things between their events.
pub(super) fn is_object(line: &[u8]) -> bool {
    line.trim_ascii_start().first() == Some(&b'{') && serde_json::from_slice::<&RawValue>(line).is_ok()
}
