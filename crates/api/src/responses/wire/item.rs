//! Items of an input, and the parts of their content. One type for all kinds: which fields an item has is its kind's affair.

use serde::Deserialize;
use utoipa::ToSchema;

use super::Tool;
use crate::json::object::objects;
use crate::json::{AnyObject, OneOrMany, Skipped, Unknown, field};

/// A string, or at most 256 parts.
pub type Content<'a> = OneOrMany<'a, Part<'a>, 256>;

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
#[schema(as = ResponseInputItem)]
pub struct Item<'a> {
    /// `message` where it is missing.
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    /// `user`, `assistant`, `system` or `developer`.
    pub role: Option<field::String<'a>>,
    #[schema(value_type = Option<AnyObject>)]
    pub content: Option<Content<'a>>,
    pub call_id: Option<field::String<'a>>,
    /// The tool that was called.
    pub name: Option<field::String<'a>>,
    pub namespace: Option<field::String<'a>>,
    /// What a function was called with: JSON.
    pub arguments: Option<field::String<'a>>,
    /// What a custom tool was called with.
    pub input: Option<field::String<'a>>,
    /// What a call gave back.
    #[schema(value_type = Option<AnyObject>)]
    pub output: Option<Content<'a>>,
    /// More tools, in an item `additional_tools`.
    pub tools: Option<field::Vec<Tool<'a>, 256>>,
    pub id: Option<field::String<'a>>,
    /// What a `compaction` holds.
    pub encrypted_content: Option<field::String<'a>>,
    #[schema(value_type = Option<AnyObject>)]
    pub summary: Option<Skipped>,
    #[schema(value_type = Option<String>)]
    pub status: Option<Skipped>,
    #[schema(value_type = Option<String>)]
    pub phase: Option<Skipped>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
#[schema(as = ResponseInputPart)]
pub struct Part<'a> {
    /// `input_text`, `output_text`, `refusal`, `input_image` or `input_file`.
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    pub text: Option<field::String<'a>>,
    pub refusal: Option<field::String<'a>>,
    /// A data URI.
    pub image_url: Option<field::String<'a>>,
    /// A data URI.
    pub file_data: Option<field::String<'a>>,
    pub filename: Option<field::String<'a>>,
    /// Refused: no files are kept here.
    pub file_id: Option<field::String<'a>>,
    /// Refused: addresses are not fetched.
    pub file_url: Option<field::String<'a>>,
    #[schema(value_type = Option<String>)]
    pub detail: Option<Skipped>,
    #[schema(value_type = Option<AnyObject>)]
    pub annotations: Option<Skipped>,
    #[schema(value_type = Option<AnyObject>)]
    pub logprobs: Option<Skipped>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

objects!(Item<'a>, Part<'a>);
