//! Answers of the agent: to `initialize`, `session/new`, `session/load`, `session/prompt`.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::update::TokenUsage;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct Initialized {
    pub protocol_version: u64,
    #[serde(default)]
    pub agent_info: Option<AgentInfo>,
    #[serde(default)]
    pub agent_capabilities: AgentCapabilities,
    #[serde(default)]
    pub auth_methods: Vec<AuthMethod>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct AgentInfo {
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub version: Option<String>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct AuthMethod {
    pub id: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::acp) struct AgentCapabilities {
    pub load_session: bool,
    pub prompt_capabilities: PromptCapabilities,
    pub mcp_capabilities: McpCapabilities,
    pub session_capabilities: SessionCapabilities,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(in crate::acp) struct PromptCapabilities {
    pub image: bool,
    pub audio: bool,
    pub embedded_context: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::acp) struct McpCapabilities {
    pub http: bool,
}

/// Each is an object when the agent can do it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::acp) struct SessionCapabilities {
    pub list: Option<Box<RawValue>>,
    pub resume: Option<Box<RawValue>>,
    pub close: Option<Box<RawValue>>,
    pub delete: Option<Box<RawValue>>,
}

/// The answer to `session/new`, `session/load` and `session/resume`; only the first names the session.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct SessionOpened<'a> {
    #[serde(default)]
    pub session_id: Option<String>,
    #[serde(default)]
    pub modes: Option<ModeState>,
    #[serde(default)]
    pub models: Option<ModelState>,
    #[serde(borrow, default)]
    pub config_options: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct ModeState {
    #[serde(default)]
    pub current_mode_id: Option<String>,
    #[serde(default)]
    pub available_modes: Vec<Mode>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct Mode {
    pub id: String,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
}

/// Left out of the newer protocol text, still what several agents speak.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct ModelState {
    #[serde(default)]
    pub current_model_id: Option<String>,
    #[serde(default)]
    pub available_models: Vec<Model>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct Model {
    #[serde(rename = "modelId")]
    pub id: String,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct ConfigOptions<'a> {
    #[serde(borrow)]
    pub config_options: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct ConfigOption {
    pub id: String,
    #[serde(default)]
    pub category: Option<String>,
    #[serde(default)]
    pub current_value: Option<serde_json::Value>,
    /// Values, or groups of values: agents do both.
    #[serde(default)]
    pub options: Vec<ConfigValue>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct ConfigValue {
    #[serde(default)]
    pub value: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub options: Vec<ConfigValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct PromptResponse<'a> {
    #[serde(borrow)]
    pub stop_reason: Cow<'a, str>,
    #[serde(default)]
    pub usage: Option<TokenUsage>,
    #[serde(default, rename = "_meta")]
    pub meta: Option<PromptMeta>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct PromptMeta {
    #[serde(default)]
    pub quota: Option<Quota>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct Quota {
    #[serde(default)]
    pub token_count: Option<TokenUsage>,
}
