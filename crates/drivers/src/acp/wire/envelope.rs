//! JSON-RPC lines, borrowed from the bytes they were read into.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Any message. What is inside is looked at only when the method says so.
#[derive(Deserialize)]
pub(in crate::acp) struct Envelope<'a> {
    #[serde(borrow, default)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub method: Option<Method<'a>>,
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

/// A method's name; borrowed unless it holds an escape.
#[derive(Deserialize)]
#[serde(transparent)]
pub(in crate::acp) struct Method<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// The one line that comes a hundred times for every other: a piece of text. It is read in one pass; whatever does
/// not fit this shape is read as an [`Envelope`].
#[derive(Deserialize)]
pub(in crate::acp) struct TextLine<'a> {
    #[serde(borrow, default)]
    pub id: Option<&'a RawValue>,
    pub method: &'a str,
    #[serde(borrow)]
    pub params: TextParams<'a>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct TextParams<'a> {
    #[serde(rename = "sessionId")]
    pub session_id: &'a str,
    #[serde(borrow)]
    pub update: TextUpdate<'a>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct TextUpdate<'a> {
    #[serde(rename = "sessionUpdate")]
    pub kind: &'a str,
    #[serde(borrow)]
    pub content: TextContent<'a>,
    #[serde(borrow, default, rename = "_meta")]
    pub meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct TextContent<'a> {
    #[serde(rename = "type")]
    pub kind: &'a str,
    #[serde(borrow)]
    pub text: &'a RawValue,
}

#[derive(Clone, Debug, Deserialize)]
pub(in crate::acp) struct RpcError {
    pub code: i64,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub data: Option<Box<RawValue>>,
}
