//! Outside → core: lines of the agent into messages, updates into events.

mod facts;
mod shape;
mod tool;
mod update;

use std::borrow::Cow;

use bytes::Bytes;
use gembridge_core::driver::AgentStop;
use gembridge_core::model::{Event, Stop, Text, Usage};
use serde_json::value::RawValue;

use super::wire::{Envelope, PromptResponse, RpcError, TextLine, TokenUsage};

use self::shape::Kind;

pub(super) use facts::{agent_facts, config_options, session_facts};
pub(super) use shape::Shapes;
pub(super) use tool::permission;
pub(super) use update::update;

/// One line of the agent.
pub(super) enum Message<'a> {
    /// A piece of text or thought: most of what agents send.
    Text {
        session: &'a str,
        event: Event,
        meta: Option<&'a RawValue>,
    },
    Request {
        id: &'a RawValue,
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    Response {
        id: u64,
        result: Result<&'a RawValue, RpcError>,
    },
    /// Not a message: a banner, garbage, a batch, an answer to nothing.
    Noise,
}

/// Reads one line. `frame` holds the same bytes and is what texts are slices of.
pub(super) fn message<'a>(line: &'a [u8], frame: &Bytes, shapes: &mut Shapes) -> Message<'a> {
    if let Some(message) = shapes.read(line, frame).or_else(|| text_line(line, frame, shapes)) {
        return message;
    }
    let Ok(envelope) = serde_json::from_slice::<Envelope<'a>>(line) else { return Message::Noise };
    match (envelope.method, envelope.id) {
        (Some(method), Some(id)) => Message::Request { id, method: method.0, params: envelope.params },
        (Some(method), None) => Message::Notification { method: method.0, params: envelope.params },
        (None, Some(id)) => response(id, envelope.result, envelope.error),
        (None, None) => Message::Noise,
    }
}

fn text_line<'a>(line: &'a [u8], frame: &Bytes, shapes: &mut Shapes) -> Option<Message<'a>> {
    let read: TextLine<'a> = serde_json::from_slice(line).ok()?;
    if read.id.is_some() || read.method != "session/update" || read.params.update.content.kind != "text" {
        return None;
    }
    let kind = match read.params.update.kind {
        "agent_message_chunk" => Kind::Text,
        "agent_thought_chunk" => Kind::Thought,
        _ => return None,
    };
    let text = string_body(read.params.update.content.text)?;
    let (session, meta) = (read.params.session_id, read.params.update.meta);
    if meta.is_none() {
        shapes.learn(line, kind, session.as_bytes(), text);
    }
    Some(Message::Text { session, event: kind.event(Text::escaped(frame.slice_ref(text))), meta })
}

/// What stands between the quotes of a JSON string.
fn string_body(value: &RawValue) -> Option<&[u8]> {
    value.get().as_bytes().strip_prefix(b"\"")?.strip_suffix(b"\"")
}

fn response<'a>(id: &'a RawValue, result: Option<&'a RawValue>, error: Option<&'a RawValue>) -> Message<'a> {
    let Ok(id) = id.get().parse::<u64>() else { return Message::Noise };
    let result = match error {
        None => Ok(result.unwrap_or(RawValue::NULL)),
        Some(error) => Err(serde_json::from_str(error.get()).unwrap_or_else(|_| RpcError {
            code: 0,
            message: error.get().to_owned(),
            data: None,
        })),
    };
    Message::Response { id, result }
}

/// How a prompt ended, and what it used.
pub(super) fn prompt_response(result: &RawValue) -> Result<(AgentStop, Option<Usage>), serde_json::Error> {
    let response: PromptResponse = serde_json::from_str(result.get())?;
    let quota = response.meta.and_then(|meta| meta.quota).and_then(|quota| quota.token_count);
    let used = response.usage.or(quota).as_ref().map(usage).filter(|usage| !usage.is_empty());
    Ok((stop(&response.stop_reason), used))
}

fn stop(reason: &str) -> AgentStop {
    AgentStop::Stopped(match reason {
        "cancelled" => return AgentStop::Cancelled,
        "end_turn" => Stop::EndTurn,
        "max_tokens" => Stop::MaxTokens,
        "max_turn_requests" => Stop::MaxTurnRequests,
        "refusal" => Stop::Refusal,
        other => Stop::Other(other.into()),
    })
}

pub(super) fn usage(tokens: &TokenUsage) -> Usage {
    Usage {
        input: tokens.input,
        output: tokens.output,
        thought: tokens.thought,
        cached_read: tokens.cached_read,
        cached_write: tokens.cached_write,
        total: tokens.total,
    }
}

/// Tokens that stand in the `_meta` of a piece of text.
pub(super) fn chunk_usage(meta: &RawValue) -> Option<Usage> {
    let meta: super::wire::ChunkMeta = serde_json::from_str(meta.get()).ok()?;
    meta.usage.as_ref().map(usage).filter(|usage| !usage.is_empty())
}
