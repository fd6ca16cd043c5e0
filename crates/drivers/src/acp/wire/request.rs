//! What the agent asks of us.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::update::ToolCall;

/// The session that any request or notification belongs to, where it names one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct SessionScoped {
    #[serde(default)]
    pub session_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct PermissionRequest<'a> {
    #[serde(borrow)]
    pub tool_call: ToolCall<'a>,
    #[serde(default)]
    pub options: Vec<PermissionOption>,
    #[serde(borrow, rename = "_meta", default)]
    pub meta: Option<&'a RawValue>,
}

/// What some agents say of a permission beside the protocol.
#[derive(Default, Deserialize)]
pub(in crate::acp) struct PermissionMeta {
    #[serde(default)]
    pub is_mcp_tool_approval: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct PermissionOption {
    pub option_id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub kind: String,
}

#[derive(Deserialize)]
pub(in crate::acp) struct Elicitation {
    #[serde(default)]
    pub message: String,
}

#[derive(Deserialize)]
pub(in crate::acp) struct ReadTextFile {
    pub path: String,
    #[serde(default)]
    pub line: Option<u32>,
    #[serde(default)]
    pub limit: Option<u32>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct WriteTextFile {
    pub path: String,
    pub content: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct CreateTerminal {
    pub command: String,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: Vec<EnvVariable>,
    #[serde(default)]
    pub cwd: Option<String>,
    #[serde(default)]
    pub output_byte_limit: Option<u64>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct EnvVariable {
    pub name: String,
    pub value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct TerminalCall {
    pub terminal_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct CancelRequest<'a> {
    #[serde(borrow)]
    pub request_id: &'a RawValue,
}
