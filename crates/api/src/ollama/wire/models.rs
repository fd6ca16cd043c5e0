//! What there is, and what can be done with it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::json::object::objects;
use crate::json::{Unknown, field};

/// A body that names a model: as `model`, or as older clients do.
#[derive(Clone, Debug, Deserialize)]
#[serde(remote = "Self")]
pub struct Named<'a> {
    #[serde(borrow)]
    pub model: Option<field::String<'a>>,
    pub name: Option<field::String<'a>>,
    /// Of a pull.
    pub stream: Option<bool>,
    #[serde(skip)]
    pub unknown: Unknown,
}

objects!(Named<'a>);

#[derive(Debug, Serialize)]
pub struct Version {
    pub version: &'static str,
}

#[derive(Debug, Serialize)]
pub struct Listing {
    pub models: Vec<Model>,
}

#[derive(Debug, Serialize)]
pub struct Model {
    pub name: String,
    pub model: String,
    pub modified_at: String,
    pub size: u64,
    pub digest: String,
    pub details: Details,
    pub capabilities: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
pub struct Details {
    pub parent_model: String,
    pub format: &'static str,
    pub family: String,
    pub families: [String; 1],
    pub parameter_size: &'static str,
    pub quantization_level: &'static str,
}

#[derive(Debug, Serialize)]
pub struct RunningList {
    pub models: Vec<Running>,
}

#[derive(Debug, Serialize)]
pub struct Running {
    pub name: String,
    pub model: String,
    pub size: u64,
    pub digest: String,
    pub details: Details,
    pub expires_at: String,
    pub size_vram: u64,
    pub context_length: u64,
}

/// By names such as `general.architecture`.
pub type ModelInfo = Map<String, Value>;

#[derive(Debug, Serialize)]
pub struct Shown {
    pub license: &'static str,
    pub modelfile: String,
    pub parameters: &'static str,
    pub template: &'static str,
    pub details: Details,
    pub model_info: ModelInfo,
    pub capabilities: Vec<&'static str>,
    pub modified_at: String,
}

#[derive(Debug, Serialize)]
pub struct Status {
    pub status: &'static str,
}
