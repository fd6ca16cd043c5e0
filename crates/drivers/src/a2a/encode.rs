//! What a server is told, in the words of its version.

use bytes::Bytes;
use gembridge_core::driver::{ServerOrigin, ToolServer};
use gembridge_core::model::{Content, Failure, FailureKind, SessionId};
use serde_json::{Value, json};

use super::card::{Delivery, Protocol};

/// Which version a request has. Servers of 0.3 know no such header; those of 1.0 take its absence for 0.3.
pub(super) fn headers(protocol: Protocol) -> &'static [(&'static str, &'static str)] {
    match protocol {
        Protocol::V03 => &[],
        Protocol::V10 => &[("a2a-version", "1.0")],
    }
}

/// Where a message belongs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub task: Option<String>,
    pub context: Option<String>,
}

/// A message, with what its metadata say.
pub(super) fn message(
    protocol: Protocol,
    delivery: Delivery,
    place: &Place,
    parts: &[Value],
    metadata: &Value,
) -> Bytes {
    let id = SessionId::new().to_string();
    let (method, role) = match (protocol, delivery) {
        (Protocol::V03, Delivery::Stream) => ("message/stream", "user"),
        (Protocol::V03, Delivery::Whole) => ("message/send", "user"),
        (Protocol::V10, Delivery::Stream) => ("SendStreamingMessage", "ROLE_USER"),
        (Protocol::V10, Delivery::Whole) => ("SendMessage", "ROLE_USER"),
    };
    let mut message = json!({ "messageId": id, "role": role, "parts": parts });
    if protocol == Protocol::V03 {
        message["kind"] = json!("message");
    }
    if let Some(task) = &place.task {
        message["taskId"] = json!(task);
    }
    if let Some(context) = &place.context {
        message["contextId"] = json!(context);
    }
    if metadata.as_object().is_some_and(|fields| !fields.is_empty()) {
        message["metadata"] = metadata.clone();
    }
    let mut params = json!({ "message": message });
    if (protocol, delivery) == (Protocol::V03, Delivery::Whole) {
        params["configuration"] = json!({ "blocking": true });
    }
    call(method, &params)
}

/// A call about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskCall {
    Get,
    Cancel,
}

pub(super) fn task_call(protocol: Protocol, asked: TaskCall, task: &str) -> Bytes {
    let method = match (protocol, asked) {
        (Protocol::V03, TaskCall::Get) => "tasks/get",
        (Protocol::V03, TaskCall::Cancel) => "tasks/cancel",
        (Protocol::V10, TaskCall::Get) => "GetTask",
        (Protocol::V10, TaskCall::Cancel) => "CancelTask",
    };
    call(method, &json!({ "id": task }))
}

/// Each request has a connection of its own, so that all may have the same id.
fn call(method: &str, params: &Value) -> Bytes {
    Bytes::from(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string())
}

/// A decision about a tool call.
pub(super) fn decision(protocol: Protocol, call: &str, outcome: &str) -> Value {
    data(protocol, &json!({ "callId": call, "outcome": outcome }))
}

/// A prompt, as far as a server takes it.
pub(super) fn parts(agent: &str, protocol: Protocol, blocks: &[Content]) -> Result<Vec<Value>, Failure> {
    blocks.iter().map(|block| part(agent, protocol, block)).collect()
}

fn part(agent: &str, protocol: Protocol, block: &Content) -> Result<Value, Failure> {
    let name_of = |uri: &str| uri.rsplit(['/', ':']).next().unwrap_or_default().to_owned();
    Ok(match block {
        Content::Text(said) => text(protocol, &said.to_str()),
        Content::Link { uri, name, .. } => text(protocol, &format!("[{name}]({uri})")),
        Content::Document { uri, text: said, .. } => {
            text(protocol, &format!("<document uri=\"{uri}\">\n{}\n</document>", said.to_str()))
        }
        Content::Image { mime, data, .. } | Content::Audio { mime, data } => file(protocol, None, mime, &data.to_str()),
        Content::Blob { uri, mime, data } => {
            let mime = mime.as_deref().unwrap_or("application/octet-stream");
            file(protocol, Some(name_of(uri)), mime, &data.to_str())
        }
        Content::Other { kind, .. } => {
            let kind: String = kind.chars().take(32).flat_map(char::escape_debug).collect();
            let why = format!("agent `{agent}` takes no block of type `{kind}`; send it as text");
            return Err(Failure::new(FailureKind::Unsupported, why));
        }
    })
}

fn text(protocol: Protocol, said: &str) -> Value {
    match protocol {
        Protocol::V03 => json!({ "kind": "text", "text": said }),
        Protocol::V10 => json!({ "text": said }),
    }
}

fn data(protocol: Protocol, data: &Value) -> Value {
    match protocol {
        Protocol::V03 => json!({ "kind": "data", "data": data }),
        Protocol::V10 => json!({ "data": data }),
    }
}

fn file(protocol: Protocol, name: Option<String>, mime: &str, bytes: &str) -> Value {
    let (mut file, field) = match protocol {
        Protocol::V03 => (json!({ "bytes": bytes, "mimeType": mime }), "name"),
        Protocol::V10 => (json!({ "raw": bytes, "mediaType": mime }), "filename"),
    };
    if let Some(name) = name {
        file[field] = json!(name);
    }
    match protocol {
        Protocol::V03 => json!({ "kind": "file", "file": file }),
        Protocol::V10 => file,
    }
}

/// `settings.json` of a folder in which Gemini CLI finds these tool servers. Tools of ours are run without a question, since
/// whoever offered them decides when it gets the call.
pub(super) fn gemini_settings(servers: &[ToolServer], call_seconds: Option<u64>) -> Value {
    let entry = |server: &ToolServer| {
        let headers: serde_json::Map<String, Value> =
            server.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let timeout = call_seconds.unwrap_or(600) * 1_000;
        let trust = server.origin == ServerOrigin::Ours;
        let entry = json!({ "httpUrl": server.url, "headers": headers, "timeout": timeout, "trust": trust });
        (server.name.to_string(), entry)
    };
    let servers: serde_json::Map<String, Value> = servers.iter().map(entry).collect();
    json!({ "mcpServers": servers, "folderTrust": true })
}
