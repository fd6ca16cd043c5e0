//! Core → outside: prompts, answers and calls as lines for the agent.

use std::path::Path;

use bytes::{BufMut, Bytes, BytesMut};
use gembridge_core::driver::ToolServer;
use gembridge_core::model::{Answer, AskBody, Content, Failure, FailureKind, Prompt, PromptAbilities};
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::wire;

/// A call with our own numeric id.
pub(super) fn request(id: u64, method: &str, params: &impl Serialize) -> Bytes {
    line(&json_rpc(Some(id), method, params))
}

pub(super) fn notification(method: &str, params: &impl Serialize) -> Bytes {
    line(&json_rpc(None, method, params))
}

/// The answer to a request of the agent, under the id that it chose.
pub(super) fn result(id: &RawValue, result: &impl Serialize) -> Bytes {
    line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

pub(super) fn error(id: &RawValue, code: i64, message: &str) -> Bytes {
    line(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }))
}

/// A result that is in the agent's dialect already.
pub(super) fn raw_result(id: &RawValue, result: &Bytes) -> Bytes {
    let mut line = BytesMut::with_capacity(result.len() + id.get().len() + 40);
    line.put_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    line.put_slice(id.get().as_bytes());
    line.put_slice(b",\"result\":");
    line.put_slice(result);
    line.put_slice(b"}");
    line.freeze()
}

pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const INTERNAL_ERROR: i64 = -32603;
pub(super) const REQUEST_CANCELLED: i64 = -32800;

/// `session/prompt`, with the text copied as the JSON string that it may already be.
pub(super) fn prompt(id: u64, session: &str, blocks: &[Box<RawValue>]) -> Bytes {
    request(id, "session/prompt", &json!({ "sessionId": session, "prompt": blocks }))
}

/// The blocks of a prompt. What the agent cannot take is refused by name.
pub(super) fn blocks(prompt: &Prompt, can: PromptAbilities) -> Result<Vec<Box<RawValue>>, Failure> {
    prompt.content.iter().map(|content| block(content, can)).collect()
}

fn block(content: &Content, can: PromptAbilities) -> Result<Box<RawValue>, Failure> {
    let (able, what) = match content {
        Content::Image { .. } => (can.image, "images"),
        Content::Audio { .. } => (can.audio, "audio"),
        Content::Document { .. } | Content::Blob { .. } => (can.embedded, "embedded files"),
        Content::Text(_) | Content::Link { .. } | Content::Other { .. } => (true, ""),
    };
    if !able {
        return Err(Failure::new(
            FailureKind::Unsupported,
            format!("this agent does not take {what} in a prompt; send text, or use an agent that does"),
        ));
    }
    match content {
        Content::Text(text) => quoted(b"{\"type\":\"text\",\"text\":\"", &text.to_escaped(), b"\"}"),
        Content::Other { body, .. } => quoted(b"", &body.0, b""),
        other => to_raw_value(&wire_block(other)).map_err(|error| unsendable(&error)),
    }
}

fn wire_block(content: &Content) -> wire::Content {
    let mut block = wire::Content {
        kind: String::new(),
        text: None,
        data: None,
        mime_type: None,
        uri: None,
        name: None,
        resource: None,
    };
    match content {
        Content::Image { mime, data, uri } => {
            block.kind = "image".into();
            block.mime_type = Some(mime.to_string());
            block.data = Some(data.to_str().into_owned());
            block.uri = uri.as_deref().map(str::to_owned);
        }
        Content::Audio { mime, data } => {
            block.kind = "audio".into();
            block.mime_type = Some(mime.to_string());
            block.data = Some(data.to_str().into_owned());
        }
        Content::Link { uri, name, mime } => {
            block.kind = "resource_link".into();
            block.uri = Some(uri.to_string());
            block.name = Some(name.to_string());
            block.mime_type = mime.as_deref().map(str::to_owned);
        }
        Content::Document { uri, mime, text } => {
            block.kind = "resource".into();
            block.resource = Some(wire::Resource {
                uri: uri.to_string(),
                mime_type: mime.as_deref().map(str::to_owned),
                text: Some(text.to_str().into_owned()),
                blob: None,
            });
        }
        Content::Blob { uri, mime, data } => {
            block.kind = "resource".into();
            block.resource = Some(wire::Resource {
                uri: uri.to_string(),
                mime_type: mime.as_deref().map(str::to_owned),
                text: None,
                blob: Some(data.to_str().into_owned()),
            });
        }
        Content::Text(_) | Content::Other { .. } => {}
    }
    block
}

fn quoted(before: &[u8], body: &[u8], after: &[u8]) -> Result<Box<RawValue>, Failure> {
    let whole = String::from_utf8_lossy(&[before, body, after].concat()).into_owned();
    RawValue::from_string(whole).map_err(|error| unsendable(&error))
}

fn unsendable(error: &serde_json::Error) -> Failure {
    Failure::new(FailureKind::Internal, format!("the prompt could not be written as JSON: {error}"))
}

/// The answer to a question of the agent, in the shape that the question's method wants.
pub(super) fn answer(id: &RawValue, body: &AskBody, answer: &Answer) -> Bytes {
    match (body, answer) {
        (AskBody::Permission { .. }, Answer::Option(option)) => {
            result(id, &json!({ "outcome": { "outcome": "selected", "optionId": option } }))
        }
        (AskBody::Permission { .. }, _) => result(id, &json!({ "outcome": { "outcome": "cancelled" } })),
        (_, Answer::Result(opaque)) => raw_result(id, &opaque.0),
        (AskBody::Form { .. }, _) => result(id, &json!({ "action": "cancel" })),
        (AskBody::Extension { method }, _) => {
            error(id, METHOD_NOT_FOUND, &format!("nobody here knows the method `{method}`"))
        }
    }
}

/// How an agent reaches tool servers.
pub(super) enum Reach<'a> {
    Http,
    /// Through this program of ours, which the agent starts.
    Shim(&'a Path),
}

/// What the program that stands in for a tool server is told. Not in its arguments, which everybody can read.
const SHIM_URL: &str = "GEMBRIDGE_MCP_URL";
const SHIM_TOKEN: &str = "GEMBRIDGE_MCP_TOKEN";
const SHIM_COMMAND: &str = "mcp-shim";

/// The first server is ours and gets the name that the profile has for it.
pub(super) fn tool_servers(servers: &[ToolServer], own_name: &str, reach: &Reach<'_>) -> serde_json::Value {
    let named = |(place, server): (usize, &ToolServer)| {
        let name = if place == 0 { own_name } else { &server.name };
        match reach {
            Reach::Http => http_server(name, server),
            Reach::Shim(program) => shim(name, server, program),
        }
    };
    servers.iter().enumerate().map(named).collect()
}

fn http_server(name: &str, server: &ToolServer) -> serde_json::Value {
    let headers: Vec<_> = server.headers.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    json!({ "type": "http", "name": name, "url": server.url, "headers": headers })
}

fn shim(name: &str, server: &ToolServer, program: &Path) -> serde_json::Value {
    let authorization = server.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let token = authorization.and_then(|(_, value)| value.strip_prefix("Bearer ")).unwrap_or_default();
    let variables = json!([{ "name": SHIM_URL, "value": server.url }, { "name": SHIM_TOKEN, "value": token }]);
    json!({ "name": name, "command": program, "args": [SHIM_COMMAND], "env": variables })
}

#[derive(Serialize)]
struct JsonRpc<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: &'a P,
}

fn json_rpc<'a, P: Serialize>(id: Option<u64>, method: &'a str, params: &'a P) -> JsonRpc<'a, P> {
    JsonRpc { jsonrpc: "2.0", id, method, params }
}

/// Our own structs and values always serialise; a line that did not would be a bug that a test finds.
fn line(message: &impl Serialize) -> Bytes {
    Bytes::from(serde_json::to_vec(message).expect("our own messages have string keys and finite numbers"))
}
