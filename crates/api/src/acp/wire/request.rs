//! The parameters of requests, and the results of those that we send.

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Initialize {
    pub client_capabilities: ClientCapabilities,
    #[serde(rename = "_meta")]
    pub meta: Option<ClientMeta>,
}

impl Initialize {
    /// Whether the client says that it understands what is ours beside the protocol.
    pub fn extensions(&self) -> Extensions {
        let metas = [self.meta.as_ref(), self.client_capabilities.meta.as_ref()];
        let is_understood = metas.into_iter().flatten().any(|meta| meta.gembridge.extensions);
        if is_understood { Extensions::Understood } else { Extensions::Unknown }
    }
}

/// What a client says of itself in `_meta`, of the request or of its capabilities.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClientMeta {
    pub gembridge: ClientExtensions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClientExtensions {
    pub extensions: bool,
}

/// Whether a client is sent `_gembridge/…` and `$/cancel_request`. Some print what they do not know into their answers, or
/// fail at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extensions {
    Unknown,
    Understood,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClientCapabilities {
    pub elicitation: Option<serde::de::IgnoredAny>,
    #[serde(rename = "_meta")]
    pub meta: Option<ClientMeta>,
}

/// What every request for a session says.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForSession {
    pub session_id: String,
}

/// What may stand in `_meta.gembridge` of a request.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct WithWishes {
    #[serde(rename = "_meta")]
    pub meta: Option<Meta>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Meta {
    pub gembridge: Option<Wishes>,
}

impl WithWishes {
    pub fn wishes(self) -> Wishes {
        self.meta.and_then(|meta| meta.gembridge).unwrap_or_default()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Wishes {
    pub agent: Option<String>,
    pub model: Option<String>,
    /// Asks for agent mode in `cwd` where chat mode is the default. Operators only.
    pub work_in_cwd: bool,
    #[serde(flatten)]
    pub replay: ReplayWish,
}

/// What a prompt may say beside its blocks.
#[derive(Debug, Deserialize)]
pub struct WithWorkIn {
    #[serde(rename = "_meta")]
    pub meta: Option<WorkInMeta>,
}

#[derive(Debug, Deserialize)]
pub struct WorkInMeta {
    pub gembridge: Option<WorkIn>,
}

/// Where the session shall work from its first prompt on. Operators only.
#[derive(Debug, Deserialize)]
pub struct WorkIn {
    pub work_in: Option<String>,
}

/// Which part of a log a client wants to see again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReplayWish {
    pub after: Option<u64>,
    pub limit: Option<u64>,
    pub since: Option<u64>,
    pub before: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NewSession {
    pub cwd: Option<String>,
    pub mcp_servers: Vec<McpServer>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct McpServer {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub name: String,
    pub url: Option<String>,
    pub headers: Vec<Header>,
}

#[derive(Debug, Deserialize)]
pub struct Header {
    pub name: String,
    pub value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt<'a> {
    #[serde(borrow)]
    pub prompt: Vec<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetMode {
    pub mode_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetModel {
    pub model_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetOption<'a> {
    pub config_id: String,
    #[serde(borrow)]
    pub value: &'a RawValue,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ListSessions {
    pub cursor: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SessionsWish {
    pub limit: Option<usize>,
    pub search: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelRequest<'a> {
    #[serde(borrow)]
    pub request_id: &'a RawValue,
}

/// What a client answers to `session/request_permission`.
#[derive(Debug, Deserialize)]
pub struct Permission {
    pub outcome: Outcome,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    #[serde(rename_all = "camelCase")]
    Selected {
        option_id: String,
    },
    Cancelled,
}
