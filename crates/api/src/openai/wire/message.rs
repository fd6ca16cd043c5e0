//! Messages of a request, and their parts.

use utoipa::openapi::{ArrayBuilder, OneOfBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::object::object;
use super::{Bounded, OneOrMany, Str};

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

object! {
    pub struct Message<'a> {
        /// `system`, `developer`, `user`, `assistant`, `tool` or `function`.
        "role" => role: Str<'a> as [String],
        "content" => content: Content<'a> as [MessageContent],
        "name" => name: Str<'a> as [String],
        "tool_calls" => tool_calls: Bounded<ToolCall<'a>, 256> as [Vec<ToolCall<'static>>],
        "tool_call_id" => tool_call_id: Str<'a> as [String],
        /// What older clients have instead of `tool_calls`.
        "function_call" => function_call: Box<FunctionCall<'a>> as [FunctionCall<'static>],
        "refusal" => refusal: Str<'a> as [String],
    }
}

object! {
    pub struct Part<'a> {
        /// `text`, `image_url`, `input_audio`, `file` or `refusal`.
        "type" => kind: Str<'a> as [String],
        "text" => text: Str<'a> as [String],
        "refusal" => refusal: Str<'a> as [String],
        "image_url" => image_url: Box<ImageUrl<'a>> as [ImageUrl<'static>],
        "input_audio" => input_audio: Box<InputAudio<'a>> as [InputAudio<'static>],
        "file" => file: Box<File<'a>> as [File<'static>],
    }
}

object! {
    pub struct ImageUrl<'a> {
        /// A data URI.
        "url" => url: Str<'a> as [String],
        "detail" => detail: Str<'a> as [String],
    }
}

object! {
    pub struct InputAudio<'a> {
        /// Base64.
        "data" => data: Str<'a> as [String],
        /// `wav` or `mp3`.
        "format" => format: Str<'a> as [String],
    }
}

object! {
    pub struct File<'a> {
        /// A data URI.
        "file_data" => file_data: Str<'a> as [String],
        "filename" => filename: Str<'a> as [String],
        "file_id" => file_id: Str<'a> as [String],
    }
}

object! {
    pub struct ToolCall<'a> {
        "id" => id: Str<'a> as [String],
        /// `function` or `custom`.
        "type" => kind: Str<'a> as [String],
        "function" => function: Box<FunctionCall<'a>> as [FunctionCall<'static>],
        "custom" => custom: Box<CustomCall<'a>> as [CustomCall<'static>],
    }
}

object! {
    pub struct FunctionCall<'a> {
        "name" => name: Str<'a> as [String],
        "arguments" => arguments: Str<'a> as [String],
    }
}

object! {
    /// A call in a history from elsewhere, whose input is no JSON.
    pub struct CustomCall<'a> {
        "name" => name: Str<'a> as [String],
        "input" => input: Str<'a> as [String],
    }
}
