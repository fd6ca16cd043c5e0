//! Core → outside: prompts, answers and calls as lines for the agent.

use std::path::Path;

use bytes::{BufMut, Bytes, BytesMut};
use gembridge_core::driver::{ServerOrigin, ToolServer};
use gembridge_core::model::{Answer, AskBody, Content, Failure, FailureKind, Opaque, PromptAbilities, PromptLabel};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::wire::{Block, Embedded, MessageName, PromptMeta, PromptParams};

/// A call with our own numeric id.
pub(super) fn request(id: u64, method: &str, params: &impl Serialize) -> Bytes {
    line(&json_rpc(Some(id), method, params))
}

pub(super) fn notification(method: &str, params: &impl Serialize) -> Bytes {
    line(&json_rpc(None, method, params))
}

/// The answer to a request of the agent, under the id that it chose.
pub(super) fn result(id: &RawValue, result: &impl Serialize) -> Bytes {
    response(id, "result", &line(result))
}

pub(super) fn error(id: &RawValue, code: i64, message: &str) -> Bytes {
    response(id, "error", &line(&json!({ "code": code, "message": message })))
}

/// A result that is in the agent's dialect already.
pub(super) fn raw_result(id: &RawValue, result: &Bytes) -> Bytes {
    response(id, "result", result)
}

/// The id is written as the bytes it came as: a `Value` cannot hold every number of JSON.
fn response(id: &RawValue, member: &str, value: &Bytes) -> Bytes {
    let mut line = BytesMut::with_capacity(value.len() + id.get().len() + 40);
    line.put_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    line.put_slice(id.get().as_bytes());
    line.put_slice(b",\"");
    line.put_slice(member.as_bytes());
    line.put_slice(b"\":");
    line.put_slice(value);
    line.put_slice(b"}");
    line.freeze()
}

pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INVALID_REQUEST: i64 = -32600;
pub(super) const INTERNAL_ERROR: i64 = -32603;
pub(super) const REQUEST_CANCELLED: i64 = -32800;

/// `session/prompt`, written straight from the blocks that the prompt lent.
pub(super) fn prompt(id: u64, session_id: &str, prompt: &[Block<'_>], label: Option<&PromptLabel>) -> Bytes {
    let meta = label.map(|label| PromptMeta { gembridge: MessageName { message_id: &label.message } });
    request(id, "session/prompt", &PromptParams { session_id, prompt, meta })
}

/// The blocks of a prompt. What the agent cannot take is refused by name.
pub(super) fn blocks(content: &[Content], can: PromptAbilities) -> Result<Vec<Block<'_>>, Failure> {
    content.iter().map(|content| block(content, can)).collect()
}

fn block(content: &Content, can: PromptAbilities) -> Result<Block<'_>, Failure> {
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
    Ok(match content {
        Content::Text(text) => Block::Text { text: text.to_str() },
        Content::Image { mime, data, uri } => {
            Block::Image { data: data.to_str(), mime_type: mime, uri: uri.as_deref() }
        }
        Content::Audio { mime, data } => Block::Audio { data: data.to_str(), mime_type: mime },
        Content::Link { uri, name, mime } => Block::ResourceLink { uri, name, mime_type: mime.as_deref() },
        Content::Document { uri, mime, text } => {
            let (mime_type, text) = (mime.as_deref(), Some(text.to_str()));
            Block::Resource { resource: Embedded { uri, mime_type, text, blob: None } }
        }
        Content::Blob { uri, mime, data } => {
            let (mime_type, blob) = (mime.as_deref(), Some(data.to_str()));
            Block::Resource { resource: Embedded { uri, mime_type, text: None, blob } }
        }
        Content::Other { body, .. } => Block::Other(on_one_line(body).map_err(|error| unsendable(&error))?),
    })
}

/// As it came, to the last digit of its numbers. Line ends are blank space wherever JSON allows them.
fn on_one_line(value: &Opaque) -> Result<Box<RawValue>, serde_json::Error> {
    let value: &RawValue = serde_json::from_slice(&value.0)?;
    RawValue::from_string(value.get().replace(['\n', '\r'], " "))
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
            error(id, METHOD_NOT_FOUND, &format!("method `{method}` is not supported"))
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

/// Ours gets the name that the profile has for it.
pub(super) fn tool_servers(servers: &[ToolServer], own_name: &str, reach: &Reach<'_>) -> serde_json::Value {
    let named = |server: &ToolServer| {
        let name = match server.origin {
            ServerOrigin::Ours => own_name,
            ServerOrigin::Others => &server.name,
        };
        match reach {
            Reach::Http => http_server(name, server),
            Reach::Shim(program) => shim(name, server, program),
        }
    };
    servers.iter().map(named).collect()
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

#[cfg(test)]
mod tests {
    use gembridge_core::model::Text;

    use super::*;

    const ALL: PromptAbilities = PromptAbilities { image: true, audio: true, embedded: true };

    fn line(content: &[Content]) -> String {
        let blocks = blocks(content, ALL).unwrap();
        String::from_utf8(prompt(1, "one", &blocks, None).to_vec()).unwrap()
    }

    const SPREAD: &str = "{\n\"type\": \"hologram\",\r\n\"at\":0.12345678901234567890123}";

    #[test]
    fn f15_an_answer_has_the_id_of_its_request_to_the_byte() {
        for id in ["1e400", "-0", "1.50", "123456789012345678901234567890", r#""\u0061""#, "null"] {
            let raw: &RawValue = serde_json::from_str(id).unwrap();
            let begin = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
            for line in [
                result(raw, &json!({ "content": "a" })),
                error(raw, METHOD_NOT_FOUND, "no method `a\nb` here"),
                raw_result(raw, &Bytes::from_static(b"{}")),
            ] {
                let line = std::str::from_utf8(&line).unwrap();
                assert!(line.starts_with(&begin) && !line.contains('\n'), "{line}");
                assert!(serde_json::from_str::<&RawValue>(line).is_ok(), "{line}");
            }
        }
    }

    #[test]
    fn a_prompt_is_one_line_whatever_is_in_it() {
        let spread = Content::Other { kind: "hologram".into(), body: Opaque(SPREAD.into()) };
        let half = Content::Text(Text::escaped(r"half \ud83d".into()));
        assert_eq!(
            line(&[Content::text("a \"b\"\n"), spread, half]),
            concat!(
                r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"one","prompt":["#,
                r#"{"type":"text","text":"a \"b\"\n"},{ "type": "hologram",  "at":0.12345678901234567890123},{"type":"text","text":"half "#,
                "\u{fffd}\"}]}}"
            )
        );
    }

    #[test]
    fn the_agent_is_told_the_id_of_a_labelled_message() {
        let label = PromptLabel { message: "m-1".into(), task: "t-1".into(), context: "theirs".into() };
        let line = prompt(1, "one", &[], Some(&label));
        let sent: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(sent["params"]["_meta"], json!({ "gembridge": { "messageId": "m-1" } }));
    }

    #[test]
    fn every_kind_of_block_has_the_names_of_the_protocol() {
        let image = Content::Image { mime: "image/png".into(), data: "aGk=".into(), uri: None };
        let audio = Content::Audio { mime: "audio/wav".into(), data: "aGk=".into() };
        let link = Content::Link { uri: "file:///a".into(), name: "a".into(), mime: Some("text/plain".into()) };
        let document = Content::Document { uri: "file:///a".into(), mime: None, text: "hi".into() };
        let blob = Content::Blob { uri: "file:///b".into(), mime: Some("x/y".into()), data: "aGk=".into() };
        let sent: serde_json::Value = serde_json::from_str(&line(&[image, audio, link, document, blob])).unwrap();
        assert_eq!(
            sent["params"]["prompt"],
            json!([
                { "type": "image", "data": "aGk=", "mimeType": "image/png" },
                { "type": "audio", "data": "aGk=", "mimeType": "audio/wav" },
                { "type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain" },
                { "type": "resource", "resource": { "uri": "file:///a", "text": "hi" } },
                { "type": "resource", "resource": { "uri": "file:///b", "mimeType": "x/y", "blob": "aGk=" } },
            ])
        );
    }
}
