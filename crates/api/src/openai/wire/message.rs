//! Messages of a request, and their parts.

use serde::Deserialize;
use utoipa::openapi::{ArrayBuilder, OneOfBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::json::object::objects;
use crate::json::{OneOrMany, Unknown, field};

/// A string, or at most 64 parts.
pub type Content<'a> = OneOrMany<'a, Part<'a>, 64>;

/// The same in the API's description.
pub struct MessageContent;

impl PartialSchema for MessageContent {
    fn schema() -> RefOr<Schema> {
        let parts = ArrayBuilder::new().items(Ref::from_schema_name(Part::name()));
        Schema::OneOf(OneOfBuilder::new().item(String::schema()).item(parts).build()).into()
    }
}

impl ToSchema for MessageContent {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Part::name().into_owned(), Part::schema()));
        Part::schemas(schemas);
    }
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct Message<'a> {
    /// `system`, `developer`, `user`, `assistant`, `tool` or `function`.
    #[serde(borrow)]
    pub role: Option<field::String<'a>>,
    #[schema(value_type = Option<MessageContent>)]
    pub content: Option<Content<'a>>,
    pub name: Option<field::String<'a>>,
    pub tool_calls: Option<field::Vec<ToolCall<'a>, 256>>,
    pub tool_call_id: Option<field::String<'a>>,
    /// What older clients have instead of `tool_calls`.
    pub function_call: Option<Box<FunctionCall<'a>>>,
    pub refusal: Option<field::String<'a>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct Part<'a> {
    /// `text`, `image_url`, `input_audio`, `file` or `refusal`.
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    pub text: Option<field::String<'a>>,
    pub refusal: Option<field::String<'a>>,
    pub image_url: Option<Box<ImageUrl<'a>>>,
    pub input_audio: Option<Box<InputAudio<'a>>>,
    pub file: Option<Box<File<'a>>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct ImageUrl<'a> {
    /// A data URI.
    #[serde(borrow)]
    pub url: Option<field::String<'a>>,
    pub detail: Option<field::String<'a>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct InputAudio<'a> {
    /// Base64.
    #[serde(borrow)]
    pub data: Option<field::String<'a>>,
    /// `wav` or `mp3`.
    pub format: Option<field::String<'a>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct File<'a> {
    /// A data URI.
    #[serde(borrow)]
    pub file_data: Option<field::String<'a>>,
    pub filename: Option<field::String<'a>>,
    pub file_id: Option<field::String<'a>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct ToolCall<'a> {
    #[serde(borrow)]
    pub id: Option<field::String<'a>>,
    /// `function` or `custom`.
    #[serde(rename = "type")]
    pub kind: Option<field::String<'a>>,
    pub function: Option<Box<FunctionCall<'a>>>,
    pub custom: Option<Box<CustomCall<'a>>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct FunctionCall<'a> {
    #[serde(borrow)]
    pub name: Option<field::String<'a>>,
    pub arguments: Option<field::String<'a>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

/// A call in a history from elsewhere, whose input is no JSON.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct CustomCall<'a> {
    #[serde(borrow)]
    pub name: Option<field::String<'a>>,
    pub input: Option<field::String<'a>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

objects!(Message<'a>, Part<'a>, ImageUrl<'a>, InputAudio<'a>, File<'a>, ToolCall<'a>, FunctionCall<'a>, CustomCall<'a>);
