//! JSON-RPC 2.0 and the few ACP shapes that are read or written often. No logic.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// A line from the client: a request, a notification or an answer.
#[derive(Deserialize)]
pub(crate) struct Incoming<'a> {
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    pub method: Option<String>,
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub result: Option<&'a RawValue>,
    pub error: Option<RpcError>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RpcError {
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(-32600, message)
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }
}

#[derive(Serialize)]
pub(crate) struct Notification<'a, P> {
    pub jsonrpc: Version,
    pub method: &'a str,
    pub params: P,
}

#[derive(Serialize)]
pub(crate) struct Request<'a, P> {
    pub jsonrpc: Version,
    pub id: u64,
    pub method: &'a str,
    pub params: P,
}

#[derive(Serialize)]
pub(crate) struct Success<'a> {
    pub jsonrpc: Version,
    pub id: &'a RawValue,
    pub result: &'a Value,
}

#[derive(Serialize)]
pub(crate) struct Failure<'a> {
    pub jsonrpc: Version,
    /// `null` where the request's id could not be read.
    pub id: Option<&'a RawValue>,
    pub error: &'a RpcError,
}

/// Always `"2.0"`.
#[derive(Clone, Copy)]
pub(crate) struct Version;

impl Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("2.0")
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionUpdate<'a, U> {
    pub session_id: &'a str,
    pub update: U,
}

#[derive(Serialize)]
#[serde(tag = "sessionUpdate")]
pub(crate) enum Chunk<'a> {
    #[serde(rename = "agent_message_chunk")]
    Message { content: Text<'a> },
    #[serde(rename = "agent_thought_chunk")]
    Thought { content: Text<'a> },
    #[serde(rename = "user_message_chunk")]
    Prompt { content: Text<'a> },
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "text")]
pub(crate) struct Text<'a> {
    pub text: &'a str,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClientCapabilities {
    pub fs: FileCapabilities,
    pub terminal: bool,
    pub elicitation: Option<ElicitationCapabilities>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FileCapabilities {
    pub read_text_file: bool,
    pub write_text_file: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ElicitationCapabilities {
    pub form: Option<Value>,
}

/// An entry of `mcpServers`; one without `url` is a stdio server.
#[derive(Deserialize)]
pub(crate) struct McpServer {
    pub name: String,
    #[serde(rename = "type")]
    pub transport: Option<String>,
    pub url: Option<String>,
    #[serde(default)]
    pub headers: Vec<Header>,
}

#[derive(Deserialize)]
pub(crate) struct Header {
    pub name: String,
    pub value: String,
}

/// A content block of a prompt, as far as the demo looks into it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContentBlock {
    #[serde(rename = "type")]
    pub kind: String,
    pub text: Option<String>,
    pub mime_type: Option<String>,
    pub data: Option<String>,
    pub uri: Option<String>,
    pub resource: Option<Resource>,
}

#[derive(Deserialize)]
pub(crate) struct Resource {
    pub uri: Option<String>,
    pub text: Option<String>,
}
