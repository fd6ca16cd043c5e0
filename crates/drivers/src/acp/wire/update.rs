//! `session/update` and what it carries.

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub(in crate::acp) struct SessionUpdate<'a> {
    #[serde(rename = "sessionId")]
    pub session_id: String,
    #[serde(borrow)]
    pub update: &'a RawValue,
}

/// What every update has.
#[derive(Deserialize)]
pub(in crate::acp) struct UpdateHead {
    #[serde(rename = "sessionUpdate")]
    pub kind: String,
}

#[derive(Deserialize)]
pub(in crate::acp) struct ContentChunk<'a> {
    #[serde(borrow)]
    pub content: &'a RawValue,
}

/// Some agents report a turn's tokens beside an empty piece of text.
#[derive(Deserialize)]
pub(in crate::acp) struct ChunkMeta {
    #[serde(default)]
    pub usage: Option<TokenUsage>,
}

/// Tokens, under every name that agents use.
#[derive(Default, Deserialize)]
pub(in crate::acp) struct TokenUsage {
    #[serde(
        default,
        rename = "inputTokens",
        alias = "input_tokens",
        alias = "promptTokens",
        alias = "promptTokenCount"
    )]
    pub input: Option<u64>,
    #[serde(
        default,
        rename = "outputTokens",
        alias = "output_tokens",
        alias = "candidatesTokens",
        alias = "candidatesTokenCount"
    )]
    pub output: Option<u64>,
    #[serde(
        default,
        rename = "thoughtTokens",
        alias = "thought_tokens",
        alias = "thoughtsTokens",
        alias = "thoughtsTokenCount"
    )]
    pub thought: Option<u64>,
    #[serde(
        default,
        rename = "cachedReadTokens",
        alias = "cached_tokens",
        alias = "cachedTokens",
        alias = "cachedContentTokenCount"
    )]
    pub cached_read: Option<u64>,
    #[serde(default, rename = "cachedWriteTokens")]
    pub cached_write: Option<u64>,
    #[serde(default, rename = "totalTokens", alias = "total_tokens", alias = "totalTokenCount")]
    pub total: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct ToolCall<'a> {
    #[serde(rename = "toolCallId")]
    pub id: String,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub kind: Option<String>,
    #[serde(default)]
    pub status: Option<String>,
    #[serde(borrow, default)]
    pub content: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    pub locations: Option<Vec<Location>>,
    #[serde(borrow, default)]
    pub raw_input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub raw_output: Option<&'a RawValue>,
    /// Whatever the agent adds; see [`ToolMeta`].
    #[serde(borrow, rename = "_meta", default)]
    pub meta: Option<&'a RawValue>,
}

/// What some agents say of a tool beside the protocol.
#[derive(Default, Deserialize)]
pub(in crate::acp) struct ToolMeta {
    #[serde(rename = "toolName", default)]
    pub tool_name: Option<String>,
    #[serde(default)]
    pub is_mcp_tool_call: bool,
}

/// The input of a call of an MCP server's tool, as some agents announce it.
#[derive(Deserialize)]
pub(in crate::acp) struct McpInput {
    pub server: String,
}

#[derive(Deserialize)]
pub(in crate::acp) struct Location {
    pub path: String,
    #[serde(default)]
    pub line: Option<u64>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct Plan {
    pub entries: Vec<PlanEntry>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct PlanEntry {
    pub content: String,
    #[serde(default)]
    pub priority: String,
    #[serde(default)]
    pub status: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct AvailableCommands {
    pub available_commands: Vec<AvailableCommand>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct AvailableCommand {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub input: Option<CommandInput>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct CommandInput {
    #[serde(default)]
    pub hint: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct CurrentMode {
    pub current_mode_id: String,
}

#[derive(Deserialize)]
pub(in crate::acp) struct SessionInfo {
    #[serde(default)]
    pub title: Option<String>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct UsageUpdate {
    pub used: u64,
    pub size: u64,
}
