//! Tools that a client offers, which of them shall be called, and the form of an answer.

use serde::Deserialize;
use utoipa::openapi::{OneOfBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::json::object::objects;
use crate::json::{AnyObject, Raw, Unknown, field};

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct Tool<'a> {
    /// `function`.
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    pub function: Option<Box<Function<'a>>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

/// A tool of the client's.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct Function<'a> {
    /// Letters, digits, `_` and `-`, at most 64.
    #[serde(borrow)]
    pub name: Option<field::String<'a>>,
    pub description: Option<field::String<'a>>,
    /// The JSON schema of the arguments. It reaches the agent as it is.
    #[schema(value_type = Option<AnyObject>)]
    pub parameters: Option<Raw<'a>>,
    /// Arguments that do not fit the schema go back to the agent before the client sees them.
    pub strict: Option<bool>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

/// One tool, or some of them.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct ToolChoice<'a> {
    /// `function` or `allowed_tools`.
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    pub function: Option<Box<ToolName<'a>>>,
    pub allowed_tools: Option<Box<AllowedTools<'a>>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct AllowedTools<'a> {
    /// `auto` or `required`.
    #[serde(borrow)]
    pub mode: Option<field::String<'a>>,
    pub tools: Option<field::Vec<AllowedTool<'a>, 256>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct AllowedTool<'a> {
    /// `function`.
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    pub function: Option<Box<ToolName<'a>>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct ToolName<'a> {
    #[serde(borrow)]
    pub name: Option<field::String<'a>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct ResponseFormat<'a> {
    /// `text`, `json_object` or `json_schema`.
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    pub json_schema: Option<Box<JsonSchema<'a>>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(remote = "Self")]
pub struct JsonSchema<'a> {
    #[serde(borrow)]
    pub name: Option<field::String<'a>>,
    pub description: Option<field::String<'a>>,
    #[schema(value_type = Option<AnyObject>)]
    pub schema: Option<Raw<'a>>,
    /// Answers are checked in any case.
    pub strict: Option<bool>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

objects!(
    Tool<'a>,
    Function<'a>,
    ToolChoice<'a>,
    AllowedTools<'a>,
    AllowedTool<'a>,
    ToolName<'a>,
    ResponseFormat<'a>,
    JsonSchema<'a>
);

/// How the API's description tells a word or an object.
macro_rules! word_or_object {
    ($(#[$meta:meta])* $name:ident, $object:ident) => {
        $(#[$meta])*
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let object = Ref::from_schema_name($object::name());
                Schema::OneOf(OneOfBuilder::new().item(String::schema()).item(object).build()).into()
            }
        }

        impl ToSchema for $name {
            fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
                schemas.push(($object::name().into_owned(), $object::schema()));
                $object::schemas(schemas);
            }
        }
    };
}

word_or_object! {
    /// `tool_choice`.
    ToolChoiceValue, ToolChoice
}
word_or_object! {
    /// `function_call` of a request.
    FunctionChoiceValue, ToolName
}
