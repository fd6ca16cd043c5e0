//! What a server sends, in either version, as far as we read it. What is not known is passed over.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use super::error::Trouble;

/// One answer of JSON-RPC.
#[derive(Deserialize)]
struct Envelope {
    result: Option<Value>,
    error: Option<RpcError>,
}

#[derive(Deserialize)]
struct RpcError {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

/// What a server tells of a task, or the one message with which it answers without a task.
#[derive(Debug)]
pub(super) enum Told {
    Task(Task),
    Message(Message),
    Status(StatusUpdate),
    Artifact(ArtifactUpdate),
    /// Of a kind that is not known.
    Other(String),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Task {
    pub id: String,
    pub context_id: Option<String>,
    pub status: Status,
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    #[serde(default)]
    pub metadata: Option<Metadata>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusUpdate {
    pub task_id: Option<String>,
    pub context_id: Option<String>,
    pub status: Status,
    #[serde(rename = "final", default)]
    pub is_final: bool,
    #[serde(default)]
    pub metadata: Option<Metadata>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactUpdate {
    pub artifact: Artifact,
    #[serde(default)]
    pub append: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Artifact {
    #[serde(default)]
    pub artifact_id: String,
    #[serde(default)]
    pub parts: Vec<Part>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Status {
    #[serde(default)]
    pub state: State,
    pub message: Option<Message>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message {
    pub task_id: Option<String>,
    pub context_id: Option<String>,
    #[serde(default)]
    pub parts: Vec<Part>,
}

/// A part of either version: 0.3 has a `file`, 1.0 has `raw` and `url`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part {
    pub text: Option<String>,
    pub data: Option<Value>,
    pub file: Option<File>,
    pub raw: Option<String>,
    pub url: Option<String>,
    pub media_type: Option<String>,
    pub filename: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct File {
    pub bytes: Option<String>,
    pub uri: Option<String>,
    pub mime_type: Option<String>,
    pub name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    pub coder_agent: Option<CoderAgent>,
    pub model: Option<String>,
    /// What went wrong, although the task goes on.
    pub error: Option<Value>,
    pub usage: Option<Usage>,
}

/// How coding agents say what a status is about.
#[derive(Debug, Deserialize)]
pub(super) struct CoderAgent {
    pub kind: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Usage {
    #[serde(rename = "inputTokens")]
    pub input: Option<u64>,
    #[serde(rename = "outputTokens")]
    pub output: Option<u64>,
    #[serde(rename = "thoughtTokens")]
    pub thought: Option<u64>,
    #[serde(rename = "cachedTokens")]
    pub cached: Option<u64>,
    #[serde(rename = "totalTokens")]
    pub total: Option<u64>,
}

/// The state of a task, by the names of both versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum State {
    #[serde(rename = "submitted", alias = "TASK_STATE_SUBMITTED")]
    Submitted,
    #[serde(rename = "working", alias = "TASK_STATE_WORKING")]
    Working,
    #[serde(rename = "input-required", alias = "TASK_STATE_INPUT_REQUIRED")]
    InputRequired,
    #[serde(rename = "auth-required", alias = "TASK_STATE_AUTH_REQUIRED")]
    AuthRequired,
    #[serde(rename = "completed", alias = "TASK_STATE_COMPLETED")]
    Completed,
    #[serde(rename = "failed", alias = "TASK_STATE_FAILED")]
    Failed,
    #[serde(rename = "canceled", alias = "TASK_STATE_CANCELED", alias = "TASK_STATE_CANCELLED", alias = "cancelled")]
    Canceled,
    #[serde(rename = "rejected", alias = "TASK_STATE_REJECTED")]
    Rejected,
    #[default]
    #[serde(other, rename = "unknown")]
    Unknown,
}

impl State {
    /// The task takes no further message.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Nothing more happens without a message of the client.
    pub fn is_at_rest(self) -> bool {
        self.is_terminal() || matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// A tool call as coding agents tell of it, in a data part.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolData {
    pub request: ToolRequest,
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub tool: ToolNames,
    pub confirmation_details: Option<Confirmation>,
    pub response: Option<ToolResponse>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolRequest {
    pub call_id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub args: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolNames {
    pub display_name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Confirmation {
    pub title: Option<String>,
    /// What may be answered, where the server says it.
    pub outcomes: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolResponse {
    #[serde(default)]
    pub result_display: Value,
    #[serde(default)]
    pub response_parts: Value,
}

/// The result in an answer of JSON-RPC.
pub(super) fn result(body: &Bytes) -> Result<Value, Trouble> {
    let envelope: Envelope = serde_json::from_slice(body).map_err(|error| Trouble::Unread(error.to_string()))?;
    match (envelope.result, envelope.error) {
        (_, Some(error)) => {
            let message: String = error.message.chars().take(2_000).collect();
            Err(Trouble::Refused { code: error.code, message })
        }
        (Some(result), None) => Ok(result),
        (None, None) => Err(Trouble::Unread("it has neither a result nor an error".to_owned())),
    }
}

/// What a result tells: in 1.0 the one field of it says of which kind it is, in 0.3 its `kind`.
pub(super) fn told(mut result: Value) -> Result<Told, Trouble> {
    let unread = |error: serde_json::Error| Trouble::Unread(error.to_string());
    let wrapped = ["task", "message", "statusUpdate", "artifactUpdate"]
        .into_iter()
        .find(|kind| result.get(*kind).is_some_and(Value::is_object) && result.get("kind").is_none());
    let kind = match wrapped {
        Some(kind) => {
            result = result[kind].take();
            kind.to_owned()
        }
        None => match result["kind"].as_str() {
            Some(kind) => kind.to_owned(),
            // A task of 1.0 where nothing else can stand, as in the answer to `GetTask`.
            None if result.get("status").is_some() => "task".to_owned(),
            None => "unknown".to_owned(),
        },
    };
    Ok(match kind.as_str() {
        "task" => Told::Task(serde_json::from_value(result).map_err(unread)?),
        "message" => Told::Message(serde_json::from_value(result).map_err(unread)?),
        "status-update" | "statusUpdate" => Told::Status(serde_json::from_value(result).map_err(unread)?),
        "artifact-update" | "artifactUpdate" => Told::Artifact(serde_json::from_value(result).map_err(unread)?),
        _ => Told::Other(kind),
    })
}
