//! Parameters as they stand on the wire. Readers of Protocol Buffers take the names of its fields as well.

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
    #[serde(default, alias = "return_immediately")]
    pub return_immediately: bool,
    #[serde(alias = "history_length")]
    pub history_length: Option<i64>,
    #[serde(alias = "task_push_notification_config")]
    pub task_push_notification_config: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message {
    #[serde(rename = "messageId", alias = "message_id")]
    pub id: String,
    pub role: String,
    pub parts: Bounded<Part, MOST_PARTS>,
    #[serde(alias = "task_id")]
    pub task_id: Option<String>,
    #[serde(alias = "context_id")]
    pub context_id: Option<String>,
    pub metadata: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part {
    pub text: Option<String>,
    pub raw: Option<String>,
    pub url: Option<String>,
    pub data: Option<Value>,
    #[serde(alias = "media_type")]
    pub media_type: Option<String>,
    pub filename: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskParams {
    pub id: String,
    #[serde(alias = "history_length")]
    pub history_length: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListParams {
    #[serde(alias = "context_id")]
    pub context_id: Option<String>,
    pub status: Option<String>,
    #[serde(alias = "page_size")]
    pub page_size: Option<i64>,
    #[serde(alias = "page_token")]
    pub page_token: Option<String>,
    #[serde(alias = "history_length")]
    pub history_length: Option<i64>,
    #[serde(alias = "include_artifacts")]
    pub include_artifacts: Option<bool>,
    #[serde(alias = "status_timestamp_after")]
    pub status_timestamp_after: Option<String>,
}
