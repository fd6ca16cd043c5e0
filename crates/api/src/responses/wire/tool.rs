//! Tools that a client offers, and which of them shall be called.

use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;

use crate::json::object::objects;
use crate::json::{AnyObject, Raw, Skipped, Unknown, field};

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(remote = "Self")]
#[schema(as = ResponseTool)]
pub struct Tool<'a> {
    /// `function`, `custom` or `namespace`. Tools of any other type are left out and named in `x-gembridge-ignored`.
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    pub name: Option<field::String<'a>>,
    pub description: Option<field::String<'a>>,
    /// The JSON schema of a function's arguments. It reaches the agent as it is.
    #[schema(value_type = Option<AnyObject>)]
    pub parameters: Option<Raw<'a>>,
    /// Arguments that do not fit the schema go back to the agent before the client sees them.
    pub strict: Option<bool>,
    /// The form of a custom tool's input, told to the agent in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AnyObject>)]
    pub format: Option<Raw<'a>>,
    /// The tools of a namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AnyObject>)]
    pub tools: Option<field::Vec<Tool<'a>, 256>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

/// One tool, or some of them.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(remote = "Self")]
#[schema(as = ResponseToolChoice)]
pub struct ToolChoice<'a> {
    /// `function`, `custom` or `allowed_tools`.
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<field::String<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<field::String<'a>>,
    /// `auto` or `required`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<field::String<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<field::Vec<AllowedTool<'a>, 256>>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[serde(remote = "Self")]
#[schema(as = ResponseAllowedTool)]
pub struct AllowedTool<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Option<field::String<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<field::String<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<field::String<'a>>,
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing)]
    pub server_label: Option<Skipped>,
    #[serde(skip)]
    #[schema(ignore)]
    pub unknown: Unknown,
}

objects!(Tool<'a>, ToolChoice<'a>, AllowedTool<'a>);

/// Comes back as it was read. The derived functions are inherent ones, by `remote`.
macro_rules! echoed {
    ($($name:ident),+) => { $(
        impl Serialize for $name<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $name::serialize(self, serializer)
            }
        }
    )+ };
}

echoed!(Tool, ToolChoice, AllowedTool);
