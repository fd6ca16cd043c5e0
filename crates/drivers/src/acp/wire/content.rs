//! Content blocks of prompts, answers and tools.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A block that the agent sends.
#[derive(Deserialize)]
pub(in crate::acp) struct Content {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub text: Option<Box<RawValue>>,
    #[serde(default)]
    pub data: Option<String>,
    #[serde(default, rename = "mimeType")]
    pub mime_type: Option<String>,
    #[serde(default)]
    pub uri: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub resource: Option<Resource>,
}

#[derive(Deserialize)]
pub(in crate::acp) struct Resource {
    pub uri: String,
    #[serde(default, rename = "mimeType")]
    pub mime_type: Option<String>,
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub blob: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct PromptParams<'a> {
    pub session_id: &'a str,
    pub prompt: &'a [Block<'a>],
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<PromptMeta<'a>>,
}

/// What a prompt says beside its content.
#[derive(Serialize)]
pub(in crate::acp) struct PromptMeta<'a> {
    pub gembridge: MessageName<'a>,
}

/// The id that the client gave its message.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct MessageName<'a> {
    pub message_id: &'a str,
}

/// A block that we send.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(in crate::acp) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        data: Cow<'a, str>,
        mime_type: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        uri: Option<&'a str>,
    },
    Audio {
        data: Cow<'a, str>,
        mime_type: &'a str,
    },
    ResourceLink {
        uri: &'a str,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<&'a str>,
    },
    Resource {
        resource: Embedded<'a>,
    },
    /// In the agent's dialect already.
    #[serde(untagged)]
    Other(Box<RawValue>),
}

/// A resource with its text or its bytes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct Embedded<'a> {
    pub uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blob: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::acp) struct ToolContent<'a> {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(borrow, default)]
    pub content: Option<&'a RawValue>,
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default)]
    pub old_text: Option<String>,
    #[serde(default)]
    pub new_text: Option<String>,
    #[serde(default)]
    pub terminal_id: Option<String>,
}
