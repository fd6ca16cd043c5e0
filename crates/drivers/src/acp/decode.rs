//! Outside → core: lines of the agent into messages, updates into events.

mod facts;
mod shape;
mod tool;
mod update;

use std::borrow::Cow;

use bytes::Bytes;
use gembridge_core::driver::AgentStop;
use gembridge_core::model::{Event, Stop, Text, Usage, UsageScope};
use serde_json::value::RawValue;

use super::wire::{Envelope, PromptResponse, RpcError, TokenUsage, UpdateLine};

use self::shape::Kind;

pub(super) use facts::{agent_facts, config_options, session_facts};
pub(super) use shape::Shapes;
pub(super) use tool::{announced_server, is_mcp_approval, permission};
pub(super) use update::update;

/// One line of the agent.
pub(super) enum Message<'a> {
    /// An update that was read in one pass: most of what agents send.
    Update {
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
    if let Some(message) = shapes.read(line, frame).or_else(|| usual_update(line, frame, shapes)) {
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

fn usual_update<'a>(line: &'a [u8], frame: &Bytes, shapes: &mut Shapes) -> Option<Message<'a>> {
    // As a whole, so that the parser need not look at the characters of each string.
    let characters = std::str::from_utf8(line).ok()?;
    let UpdateLine { id: None, method: "session/update", params } = serde_json::from_str(characters).ok()? else {
        return None;
    };
    let (session, update) = (params.session_id, params.update);
    let kind = match update.kind {
        "agent_message_chunk" => Kind::Text,
        "agent_thought_chunk" => Kind::Thought,
        "usage_update" => {
            let event = Event::Context { used: update.used?, size: update.size? };
            return Some(Message::Update { session, event, meta: None });
        }
        _ => return None,
    };
    let text = string_body(update.content.filter(|content| content.kind == "text")?.text)?;
    if update.meta.is_none() {
        shapes.learn(line, kind, session.as_bytes(), text);
    }
    let event = kind.event(Text::escaped(frame.slice_ref(text)));
    Some(Message::Update { session, event, meta: update.meta })
}

/// The call that a line answers, and the result in it, if the line has the form that nearly every agent gives it.
///
/// Nobody has looked at the result yet: only if all of it is one JSON value, the line is that answer.
pub(super) fn usual_response(line: &[u8]) -> Option<(u64, &str)> {
    let rest = line.strip_prefix(b"{\"jsonrpc\":\"2.0\",\"id\":")?;
    let (id, rest) = rest.split_at(rest.iter().position(|byte| !byte.is_ascii_digit())?);
    let result = rest.strip_prefix(b",\"result\":")?.strip_suffix(b"}")?;
    Some((std::str::from_utf8(id).ok()?.parse().ok()?, std::str::from_utf8(result).ok()?))
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
pub(super) fn prompt_response(result: &str) -> Result<(AgentStop, Option<Usage>), serde_json::Error> {
    let response: PromptResponse<'_> = serde_json::from_str(result)?;
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
        scope: UsageScope::Turn,
    }
}

/// Tokens that stand in the `_meta` of a piece of text.
pub(super) fn chunk_usage(meta: &RawValue) -> Option<Usage> {
    let meta: super::wire::ChunkMeta = serde_json::from_str(meta.get()).ok()?;
    meta.usage.as_ref().map(usage).filter(|usage| !usage.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a line that answers prompt 7 in the usual form says that it ended, if it does.
    fn end(line: &str) -> Option<AgentStop> {
        let (id, result) = usual_response(line.as_bytes())?;
        assert_eq!(id, 7);
        prompt_response(result).ok().map(|(stop, _)| stop)
    }

    #[test]
    fn the_end_of_a_turn_is_read_in_its_usual_form_only_if_nothing_else_is_in_the_line() {
        let ended = Some(AgentStop::Stopped(Stop::EndTurn));
        assert_eq!(end(r#"{"jsonrpc":"2.0","id":7,"result":{"stopReason":"end_turn"}}"#), ended);
        assert_eq!(end(r#"{"jsonrpc":"2.0","id":7,"result":{"stopReason":"end\u005fturn"}}"#), ended);
        assert_eq!(end(r#"{"jsonrpc":"2.0","id":7,"result":{"stopReason":"end_turn"},"error":{"code":1}}"#), None);
        assert_eq!(end(r#"{"jsonrpc":"2.0","id":7,"result":{"stopReason":"end_turn"}"#), None);
        assert_eq!(end(r#"{"jsonrpc":"2.0","id":7,"result":null}"#), None);
        assert_eq!(end(r#"{"id":7,"jsonrpc":"2.0","result":{"stopReason":"end_turn"}}"#), None);
    }

    #[test]
    fn how_full_the_context_is_is_read_in_one_pass_unless_a_number_is_none() {
        let line = |used: &str| {
            let update =
                format!(r#"{{"sessionUpdate":"usage_update","size":9,"used":{used},"cost":{{"amount":0.5}}}}"#);
            format!(r#"{{"method":"session/update","params":{{"sessionId":"one","update":{update}}}}}"#)
        };
        let read = |line: &str| {
            let frame = Bytes::copy_from_slice(line.as_bytes());
            match message(&frame.clone(), &frame, &mut Shapes::default()) {
                Message::Update { session: "one", event, meta: None } => Some(event),
                _ => None,
            }
        };
        assert_eq!(read(&line("4")), Some(Event::Context { used: 4, size: 9 }));
        assert_eq!(read(&line("null")), None);
        assert_eq!(read(&line("\"4\"")), None);
    }
}
