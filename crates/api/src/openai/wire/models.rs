//! What can be named as `model`.

use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
pub struct ModelList {
    /// `list`
    pub object: &'static str,
    pub data: Vec<ModelEntry>,
    /// The list is never cut. This and the two that follow are for clients of the Messages API.
    pub has_more: bool,
    pub first_id: Option<String>,
    pub last_id: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct ModelEntry {
    pub id: String,
    /// `model`
    pub object: &'static str,
    /// The same for clients of the Messages API.
    pub r#type: &'static str,
    /// UNIX time in seconds.
    pub created: u64,
    /// The same as a date.
    pub created_at: String,
    pub display_name: String,
    /// The agent that answers.
    pub owned_by: String,
    /// What the name stands for, where it is another name for a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias_of: Option<String>,
    /// What the agent reads, once it has said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_modalities: Option<Vec<&'static str>>,
}
