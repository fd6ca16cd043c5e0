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

/// The lines that come in every turn: a piece of text, and how full the context is. They are read in one pass;
/// whatever does not fit this shape is read as an [`Envelope`].
#[derive(Deserialize)]
pub(in crate::acp) struct UpdateLine<'a> {
    #[serde(borrow, default)]
    pub id: Option<&'a RawValue>,
    pub method: &'a str,
    #[serde(borrow)]
    pub params: UsualParams<'a>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct UsualParams<'a> {
    #[serde(rename = "sessionId")]
    pub session_id: &'a str,
    #[serde(borrow)]
    pub update: UsualUpdate<'a>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct UsualUpdate<'a> {
    #[serde(rename = "sessionUpdate")]
    pub kind: &'a str,
    #[serde(borrow, default)]
    pub content: Option<TextContent<'a>>,
    #[serde(default)]
    pub used: Option<u64>,
    #[serde(default)]
    pub size: Option<u64>,
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
