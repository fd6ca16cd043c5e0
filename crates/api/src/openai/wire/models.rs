//! What can be named as `model`.

use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
pub struct ModelList {
    /// `list`
    pub object: &'static str,
    pub data: Vec<ModelEntry>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct ModelEntry {
    pub id: String,
    /// `model`
    pub object: &'static str,
    pub created: u64,
    /// The agent that answers.
    pub owned_by: String,
}
