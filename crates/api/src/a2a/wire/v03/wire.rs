//! Parameters as they stand on the wire.

use serde::Deserialize;
use serde_json::Value;

use crate::a2a::wire::MOST_PARTS;
use crate::json::Bounded;

#[derive(Deserialize)]
pub(super) struct SendParams {
    pub message: Message,
    pub configuration: Option<Configuration>,
    pub metadata: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Configuration {
    pub blocking: Option<bool>,
    pub history_length: Option<i64>,
    pub push_notification_config: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message {
    #[serde(rename = "messageId")]
    pub id: String,
    pub role: String,
    pub parts: Bounded<Part, MOST_PARTS>,
    pub task_id: Option<String>,
    pub context_id: Option<String>,
    pub metadata: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Part {
    pub kind: String,
    pub text: Option<String>,
    pub file: Option<File>,
    pub data: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct File {
    pub bytes: Option<String>,
    /// Some clients write `url`.
    #[serde(alias = "url")]
    pub uri: Option<String>,
    pub mime_type: Option<String>,
    pub name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskParams {
    pub id: String,
    pub history_length: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListParams {
    pub context_id: Option<String>,
    pub status: Option<String>,
    pub page_size: Option<i64>,
    pub page_token: Option<String>,
    pub history_length: Option<i64>,
    #[serde(default)]
    pub include_artifacts: bool,
}
