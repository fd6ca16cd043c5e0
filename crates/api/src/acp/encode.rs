//! Core → outside: entries of a log as messages of the protocol. What the agent sent goes out as it came; the rest is
//! said in the protocol's words, or in our own notifications.

mod content;
mod facts;
mod splice;
mod template;
mod update;

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use gembridge_core::log::LogEntry;
use gembridge_core::model::{
    Answer, AnsweredBy, Ask, AskBody, ClientId, Dialect, Event, OptionKind, Outcome, SessionFacts, SessionId, Stop,
    Usage,
};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error::Refusal;
use crate::websocket::write_header;

pub use facts::{agent_entry, execution, new_session, session_entry};

pub use template::Template;

use splice::{Inlay, splice};

/// A session's name, ready to be written.
#[derive(Clone, Debug)]
pub struct SessionName {
    pub id: SessionId,
    json: Vec<u8>,
}

impl SessionName {
    pub fn new(id: SessionId) -> Self {
        Self { id, json: format!("\"{id}\"").into_bytes() }
    }
}

/// What our marks, our name of the session and the head of the frame add.
const MARKS_ROOM: usize = 128;

/// For whom an entry is shown.
#[derive(Clone, Copy, Debug)]
pub enum View {
    /// It is shown again: everything is.
    Replay,
    /// It just happened. Nobody hears an echo of what it said itself.
    Live(ClientId),
}

/// Appends what a client sees of an entry; questions and their answers aside, which each client knows by its own ids.
pub fn entry(out: &mut BytesMut, session: &SessionName, template: &mut Template, entry: &LogEntry, view: View) {
    if let Event::Text(text) | Event::Thought(text) = &entry.event
        && template.write(out, session, entry, text)
    {
        return;
    }
    if let Some(frame) = &entry.frame
        && frame.dialect == Dialect::Acp
        && !matches!(entry.event, Event::Asked(_))
    {
        let marks = marks(entry, "");
        let inlay = Inlay { id: None, session: &session.json, marks: marks.as_bytes() };
        if splice(out, &frame.bytes, &inlay) {
            return;
        }
        tracing::debug!(session = %session.id, seq = entry.seq.0, "a frame is written anew, since it cannot be passed on");
    }
    match &entry.event {
        Event::Prompted { prompt, by } => {
            if matches!(view, View::Live(client) if client == *by) {
                return;
            }
            let blocks = prompt.blocks();
            let parts = blocks.len();
            for (part, block) in blocks.iter().enumerate() {
                let more = if parts > 1 { format!(",\"part\":{},\"parts\":{parts}", part + 1) } else { String::new() };
                let update = json!({ "sessionUpdate": "user_message_chunk", "content": content::block(block) });
                session_update(out, session, entry, &update, &more);
            }
        }
        Event::AgentReplaced { reason } => {
            ours(out, "_gembridge/agent_replaced", session, entry, json!({ "reason": reason }));
        }
        Event::Model(model) => ours(out, "_gembridge/model_changed", session, entry, json!({ "modelId": model })),
        Event::Usage(used) => ours(out, "_gembridge/usage", session, entry, json!({ "usage": usage(used) })),
        // Told by those who know the turn and the question.
        Event::Started | Event::Ended(_) | Event::Asked(_) | Event::Answered { .. } => {}
        event => {
            if let Some((update, more)) = update::of(event) {
                session_update(out, session, entry, &update, more);
            }
        }
    }
}

/// What the session is now, for a client that is not shown the entries that told it. These stand at no place of the log.
pub fn present(out: &mut BytesMut, session: &SessionName, facts: &SessionFacts) {
    let events = [
        facts.mode.clone().map(Event::Mode),
        Some(Event::Commands(Arc::clone(&facts.commands))).filter(|_| !facts.commands.is_empty()),
        facts.options.clone().map(Event::Options),
        facts.title.clone().map(Event::Title),
    ];
    for (update, _) in events.iter().flatten().filter_map(update::of) {
        let meta = json!({ "gembridge": { "present": true } });
        let params = json!({ "sessionId": session.id.to_string(), "update": update, "_meta": meta });
        notification(out, "session/update", &params);
    }
}

/// About as much as these entries take when they are shown.
pub fn room_for(entries: &[LogEntry]) -> usize {
    let frames = entries.iter().filter_map(|entry| entry.frame.as_ref());
    frames.map(|frame| frame.bytes.len() + MARKS_ROOM).sum()
}

/// `_gembridge/turn_started`, for a client that may have asked for the turn.
pub fn turn_started(out: &mut BytesMut, session: &SessionName, entry: &LogEntry, by_you: bool) {
    ours(out, "_gembridge/turn_started", session, entry, json!({ "byYou": by_you }));
}

pub fn turn_ended(out: &mut BytesMut, session: &SessionName, entry: &LogEntry, outcome: &Outcome, used: &Usage) {
    let mut params = match outcome {
        Outcome::Finished(stop) => json!({ "outcome": "finished", "stopReason": stop_reason(stop) }),
        Outcome::Cancelled => json!({ "outcome": "cancelled", "stopReason": "cancelled" }),
        Outcome::Interrupted(failure) => {
            let refusal = Refusal::from(failure.clone());
            let error = json!({ "message": refusal.message, "code": refusal.data["code"] });
            json!({ "outcome": "interrupted", "stopReason": null, "error": error })
        }
    };
    if !used.is_empty() {
        params["usage"] = usage(used);
    }
    ours(out, "_gembridge/turn_ended", session, entry, params);
}

/// The result of `session/prompt`, or the error that it ended in.
pub fn prompt_result(outcome: &Outcome, used: &Usage, entry: &LogEntry) -> Result<Value, Refusal> {
    let reason = match outcome {
        Outcome::Finished(stop) => stop_reason(stop),
        Outcome::Cancelled => "cancelled",
        Outcome::Interrupted(failure) => return Err(failure.clone().into()),
    };
    let mut meta = json!({ "seq": entry.seq.0, "turn": entry.turn.map(|turn| turn.0) });
    if let Outcome::Finished(Stop::Other(own)) = outcome {
        meta["agentStopReason"] = json!(own);
    }
    let mut result = json!({ "stopReason": reason, "_meta": { "gembridge": meta } });
    if !used.is_empty() {
        result["usage"] = usage(used);
    }
    Ok(result)
}

/// The protocol knows these and no others.
fn stop_reason(stop: &Stop) -> &'static str {
    match stop {
        Stop::EndTurn | Stop::Other(_) => "end_turn",
        Stop::MaxTokens => "max_tokens",
        Stop::MaxTurnRequests => "max_turn_requests",
        Stop::Refusal => "refusal",
    }
}

fn usage(used: &Usage) -> Value {
    let sum = used.input.unwrap_or(0) + used.output.unwrap_or(0) + used.thought.unwrap_or(0);
    let mut usage = json!({
        "totalTokens": used.total.unwrap_or(sum),
        "inputTokens": used.input.unwrap_or(0),
        "outputTokens": used.output.unwrap_or(0),
    });
    let further = [
        ("thoughtTokens", used.thought),
        ("cachedReadTokens", used.cached_read),
        ("cachedWriteTokens", used.cached_write),
    ];
    for (name, tokens) in further {
        if let Some(tokens) = tokens {
            usage[name] = json!(tokens);
        }
    }
    usage
}

/// A question of the agent as a request of ours to one client.
pub fn asked(out: &mut BytesMut, session: &SessionName, entry: &LogEntry, ask: &Ask, id: u64, expires: u64) {
    let more = format!(",\"ask\":{},\"expiresAt\":{expires}", ask.id.0);
    let marks = marks(entry, &more);
    if let Some(frame) = &entry.frame
        && frame.dialect == Dialect::Acp
        && splice(out, &frame.bytes, &Inlay { id: Some(id), session: &session.json, marks: marks.as_bytes() })
    {
        return;
    }
    let (method, mut params) = match &ask.body {
        AskBody::Permission { tool, options, .. } => {
            let options: Vec<_> = options
                .iter()
                .map(|option| json!({ "optionId": option.id, "name": option.name, "kind": option_kind(option.kind) }))
                .collect();
            ("session/request_permission", json!({ "toolCall": update::tool(tool), "options": options }))
        }
        AskBody::Form { message } => {
            let schema = json!({ "type": "object", "properties": {} });
            ("elicitation/create", json!({ "mode": "form", "message": message, "requestedSchema": schema }))
        }
        AskBody::Extension { method } => (&**method, json!({})),
    };
    params["sessionId"] = json!(session.id.to_string());
    params["_meta"] = json!({ "gembridge": raw(marks) });
    message(out, &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
}

fn option_kind(kind: OptionKind) -> &'static str {
    match kind {
        OptionKind::AllowOnce => "allow_once",
        OptionKind::AllowAlways => "allow_always",
        OptionKind::RejectAlways => "reject_always",
        OptionKind::RejectOnce | OptionKind::Unknown => "reject_once",
    }
}

/// `_gembridge/request_resolved`: the question needs no answer any more.
pub fn resolved(out: &mut BytesMut, session: &SessionName, entry: &LogEntry, asked: Option<&LogEntry>, to: ClientId) {
    let Event::Answered { ask, answer, by } = &entry.event else { return };
    let outcome = match answer {
        Answer::Option(id) => json!({ "outcome": "selected", "optionId": id }),
        Answer::Cancelled => json!({ "outcome": "cancelled" }),
        Answer::Result(_) => json!({ "outcome": "answered" }),
    };
    let by = match by {
        AnsweredBy::Client(client) if *client == to => "you",
        AnsweredBy::Client(_) => "client",
        AnsweredBy::Policy => "policy",
        AnsweredBy::Timeout => "timeout",
        AnsweredBy::Cancel => "cancel",
    };
    let mut params = json!({ "ask": ask.0, "outcome": outcome, "by": by });
    if let Some(Event::Asked(asked)) = asked.map(|entry| &entry.event)
        && let AskBody::Permission { tool, .. } = &asked.body
    {
        params["toolCallId"] = json!(tool.id.as_str());
    }
    ours(out, "_gembridge/request_resolved", session, entry, params);
}

/// `$/cancel_request`: a question that stands open before a client needs no answer any more.
pub fn withdrawn(out: &mut BytesMut, request: u64) {
    notification(out, "$/cancel_request", &json!({ "requestId": request }));
}

/// A notification of ours about an entry.
fn ours(out: &mut BytesMut, method: &str, session: &SessionName, entry: &LogEntry, more: Value) {
    let mut params = json!({
        "sessionId": session.id.to_string(),
        "seq": entry.seq.0,
        "at": entry.at.0,
        "turn": entry.turn.map(|turn| turn.0),
    });
    if let (Value::Object(params), Value::Object(more)) = (&mut params, more) {
        params.extend(more);
    }
    notification(out, method, &params);
}

fn session_update(out: &mut BytesMut, session: &SessionName, entry: &LogEntry, update: &Value, more: &str) {
    let params = json!({
        "sessionId": session.id.to_string(),
        "update": update,
        "_meta": { "gembridge": raw(marks(entry, more)) },
    });
    notification(out, "session/update", &params);
}

/// The value of `_meta.gembridge`: the place of the entry, its time, its turn.
fn marks(entry: &LogEntry, more: &str) -> String {
    let turn = entry.turn.map(|turn| format!(",\"turn\":{}", turn.0)).unwrap_or_default();
    format!("{{\"seq\":{},\"at\":{}{turn}{more}}}", entry.seq.0, entry.at.0)
}

/// JSON of our own, or of somebody who was checked, as a value.
pub fn raw(json: impl Into<String>) -> Value {
    serde_json::from_str(&json.into()).unwrap_or(Value::Null)
}

pub fn notification(out: &mut BytesMut, method: &str, params: &Value) {
    message(out, &json!({ "jsonrpc": "2.0", "method": method, "params": params }));
}

/// The response to a request. The id is written as the bytes it came as: a `Value` cannot hold every number of JSON.
#[derive(Serialize)]
struct Response<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    #[serde(flatten)]
    outcome: ResponseOutcome<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum ResponseOutcome<'a> {
    Result(&'a Value),
    Error(Value),
}

pub fn result(out: &mut BytesMut, id: &RawValue, result: &Value) {
    message(out, &Response { jsonrpc: "2.0", id, outcome: ResponseOutcome::Result(result) });
}

pub fn error(out: &mut BytesMut, id: &RawValue, refusal: &Refusal) {
    let error = json!({ "code": refusal.code, "message": refusal.message, "data": refusal.data });
    message(out, &Response { jsonrpc: "2.0", id, outcome: ResponseOutcome::Error(error) });
}

/// Our own values always serialise; one that did not would be a bug that a test finds.
fn message(out: &mut BytesMut, message: &impl Serialize) {
    let json = serde_json::to_vec(message).expect("our own messages have string keys and finite numbers");
    write_header(out, json.len());
    out.put_slice(&json);
}

/// What a turn's state is called.
pub fn turn_name(turn: gembridge_core::session::TurnState) -> &'static str {
    match turn {
        gembridge_core::session::TurnState::Idle => "idle",
        gembridge_core::session::TurnState::Opening(_) => "opening",
        gembridge_core::session::TurnState::Running(_) => "running",
    }
}
