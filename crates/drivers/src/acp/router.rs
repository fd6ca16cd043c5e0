//! Where each line of the agent belongs: to a caller, to a session, to a method that we offer, or nowhere.

use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::driver::{Signal, Update};
use gembridge_core::model::{
    Answer, AnsweredBy, Ask, AskBody, Dialect, Event, Frame, Subject, Text, ToolCall, ToolStatus, Usage, UsageScope,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::client_methods::Job;
use super::decode::{self, Message};
use super::own_tools::OwnTools;
use super::routing_table::{CallError, MOST_ASKS, OpenAsk, Pending, Phase, Purpose, RoutingTable, Tools};
use super::{encode, error, wire};
use crate::profile::{PermissionSign, Quirk};

/// What is the same for every line of a connection.
pub(super) struct Router {
    pub agent: Arc<str>,
    pub quirks: Vec<Quirk>,
    pub own_tools: OwnTools,
}

/// What a line leads to beside signals.
#[derive(Default)]
pub(super) struct Routed {
    pub jobs: Vec<Job>,
    pub replies: Vec<Bytes>,
    pub noise: u64,
}

impl Router {
    pub(super) fn has(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }

    pub(super) fn route(&self, table: &mut RoutingTable, line: &[u8], frame: Bytes, now: Instant, routed: &mut Routed) {
        if self.usual_end(table, line) {
            return;
        }
        match decode::message(line, &frame, table.shapes()) {
            Message::Update { session, event, meta } => {
                self.usual_update(table, session, event, meta, frame, now, routed);
            }
            Message::Notification { method, params } => {
                self.notification(table, &method, params, frame, now, routed);
            }
            Message::Request { id, method, params } => self.request(table, id, &method, params, frame, routed),
            Message::Response { id, result } => self.response(table, id, result, routed),
            // A broken character costs itself, not the message around it.
            Message::Noise if std::str::from_utf8(line).is_err() => {
                let mended = Bytes::from(String::from_utf8_lossy(line).into_owned());
                self.route(table, &mended.clone(), mended, now, routed);
            }
            Message::Noise => noise(line, routed),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one line, taken apart once")]
    fn usual_update(
        &self,
        table: &mut RoutingTable,
        session: &str,
        event: Event,
        meta: Option<&RawValue>,
        frame: Bytes,
        now: Instant,
        routed: &mut Routed,
    ) {
        let used = meta.and_then(decode::chunk_usage);
        let update = self.quirky_text(event, frame);
        deliver(table, session, update, now, routed);
        if let Some(usage) = used {
            deliver(table, session, Update::ours(Event::Usage(self.counted(usage))), now, routed);
        }
    }

    /// Text that is not what it looks like.
    fn quirky_text(&self, event: Event, frame: Bytes) -> Update {
        match event {
            Event::Text(text) if self.has(Quirk::ModeUpdateAsText) => match mode_update(&text) {
                Some(mode) => Update::ours(Event::Mode(mode)),
                None => framed(Event::Text(text), frame),
            },
            Event::Thought(text) if self.has(Quirk::ThoughtSubjectMarkup) => {
                framed(Event::Thought(without_empty_subject(text, &frame)), frame)
            }
            event => framed(event, frame),
        }
    }

    fn notification(
        &self,
        table: &mut RoutingTable,
        method: &str,
        params: Option<&RawValue>,
        frame: Bytes,
        now: Instant,
        routed: &mut Routed,
    ) {
        match method {
            "session/update" => {
                let Some(params) = read::<wire::SessionUpdate<'_>>(params) else { return noise(&frame, routed) };
                let update = params.update.get();
                let mut event = match table.known_commands(update) {
                    Some(commands) => Event::Commands(commands),
                    None => decode::update(params.update),
                };
                match &mut event {
                    Event::ToolCall(call) => {
                        self.name_tool(call);
                        self.note_announced(table, &params);
                    }
                    Event::Commands(commands) => table.learn_commands(update, commands),
                    _ => {}
                }
                let update = self.quirky_text(event, frame);
                deliver(table, &params.session_id, update, now, routed);
            }
            "$/cancel_request" => withdraw(table, params, routed),
            // Whatever else names a session is passed on whole to whoever watches it.
            other => match read::<wire::SessionScoped>(params).and_then(|scoped| scoped.session_id) {
                Some(session) => {
                    let update = framed(Event::Other { kind: other.into() }, frame);
                    deliver(table, &session, update, now, routed);
                }
                None => noise(&frame, routed),
            },
        }
    }

    fn request(
        &self,
        table: &mut RoutingTable,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        frame: Bytes,
        routed: &mut Routed,
    ) {
        let session = read::<wire::SessionScoped>(params).and_then(|scoped| scoped.session_id);
        let Some(at) = session.as_deref().and_then(|session| table.find(session)) else {
            let answer = match session {
                Some(session) => encode::error(id, encode::INVALID_PARAMS, &format!("no session `{session}` here")),
                None => encode::error(id, encode::METHOD_NOT_FOUND, &format!("no method `{method}` here")),
            };
            routed.replies.push(answer);
            return;
        };
        let asked = match method {
            "session/request_permission" => read::<wire::PermissionRequest<'_>>(params).map(|request| {
                let mut body = decode::permission(&request);
                if let AskBody::Permission { tool, subject, .. } = &mut body {
                    self.name_tool(tool);
                    if let Some(slot) = table.at(at).filter(|slot| slot.tools == Tools::Given) {
                        *subject = match self.own_tools.sign() {
                            PermissionSign::Title | PermissionSign::MetaToolName => self.own_tools.subject(tool),
                            PermissionSign::AnnouncedCall if decode::is_mcp_approval(&request) => {
                                slot.announced_subject(&tool.id)
                            }
                            PermissionSign::AnnouncedCall => Subject::AgentTool,
                        };
                    }
                }
                body
            }),
            "elicitation/create" => read::<wire::Elicitation>(params)
                .map(|elicitation| AskBody::Form { message: elicitation.message.into() }),
            extension if extension.starts_with('_') || extension == "mcp/message" => {
                Some(AskBody::Extension { method: extension.into() })
            }
            other => {
                let Some(slot) = table.at(at) else { return };
                match slot.methods.job(id, other, params) {
                    Ok(Job::Consent { id, path, content }) => self.ask_consent(table, at, &id, path, content),
                    Ok(job) => routed.jobs.push(job),
                    Err(refusal) => routed.replies.push(refusal),
                }
                return;
            }
        };
        let Some(body) = asked else {
            let text = format!("the parameters of `{method}` could not be read");
            routed.replies.push(encode::error(id, encode::INVALID_PARAMS, &text));
            return;
        };
        if table.open_asks() >= MOST_ASKS {
            routed.replies.push(encode::answer(id, &body, &Answer::Cancelled));
            return;
        }
        self.ask(table, at, id, body, Purpose::Agent, Some(frame));
    }

    fn ask(
        &self,
        table: &mut RoutingTable,
        at: usize,
        id: &RawValue,
        body: AskBody,
        purpose: Purpose,
        frame: Option<Bytes>,
    ) {
        let ask = Ask { id: table.next_ask(), body: body.clone() };
        let Some(slot) = table.at(at) else { return };
        slot.asks.insert(ask.id, OpenAsk { id: id.to_owned(), body, purpose });
        let mut before = Vec::new();
        if let Some(filter) = slot.repeat.as_mut() {
            filter.reset(&mut before);
        }
        if let AskBody::Permission { tool, .. } = &ask.body
            && self.has(Quirk::PermissionWithoutToolCall)
        {
            let mut announced = (**tool).clone();
            announced.status = announced.status.or(Some(ToolStatus::Pending));
            before.push(Update::ours(Event::ToolCall(Box::new(announced))));
        }
        let frame = frame.map(|bytes| Frame { dialect: Dialect::Acp, bytes });
        before.push(Update { event: Event::Asked(Box::new(ask)), frame });
        for update in before {
            table.push(at, Signal::Update(update));
        }
    }

    /// A write that could change how other programs behave is put to whoever watches.
    fn ask_consent(&self, table: &mut RoutingTable, at: usize, id: &RawValue, path: String, content: String) {
        let body = super::client_methods::consent(&path, &content);
        self.ask(table, at, id, body, Purpose::Write { path, content }, None);
    }

    fn response(
        &self,
        table: &mut RoutingTable,
        id: u64,
        result: Result<&RawValue, wire::RpcError>,
        routed: &mut Routed,
    ) {
        // An answer to a call that nobody waits for: twice the same, or too late.
        let Some(pending) = table.forget(id) else {
            routed.noise += 1;
            return;
        };
        let whole = |raw: &RawValue| Bytes::copy_from_slice(raw.get().as_bytes());
        match pending {
            Pending::Call(reply) => drop(reply.send(result.map(whole).map_err(CallError::Refused))),
            Pending::Open { opening, reply } => {
                // A session that nobody waits for any more would never be taken out again.
                if !reply.is_closed()
                    && let Ok(raw) = &result
                    && let Some(session) = read::<wire::SessionScoped>(Some(raw)).and_then(|scoped| scoped.session_id)
                {
                    table.add(&session.into(), *opening, Phase::Live);
                }
                drop(reply.send(result.map(whole).map_err(CallError::Refused)));
            }
            Pending::Prompt { session } => {
                let end = match result {
                    Ok(raw) => match decode::prompt_response(raw.get()) {
                        Ok((stop, usage)) => Signal::Done { stop, usage: usage.map(|usage| self.counted(usage)) },
                        Err(unread) => Signal::Failed(error::protocol(&self.agent, unread)),
                    },
                    Err(rpc) => Signal::Failed(error::failure(&self.agent, &self.quirks, &rpc)),
                };
                prompt_ended(table, &session, end);
            }
        }
    }

    /// Remembers a call of a tool of ours, where only its announcement says whose tool it is.
    fn note_announced(&self, table: &mut RoutingTable, params: &wire::SessionUpdate<'_>) {
        if self.own_tools.sign() == PermissionSign::AnnouncedCall
            && let Some((id, server)) = decode::announced_server(params.update)
            && self.own_tools.is_server(&server)
            && let Some(slot) = table.slot(&params.session_id)
        {
            slot.announce(id);
        }
    }

    /// The end of a turn as nearly every agent writes it, read in one pass. Whether the line was one.
    fn usual_end(&self, table: &mut RoutingTable, line: &[u8]) -> bool {
        let Some((id, result)) = decode::usual_response(line) else { return false };
        let Some(session) = table.prompted(id) else { return false };
        let Ok((stop, usage)) = decode::prompt_response(result) else { return false };
        table.forget(id);
        let usage = usage.map(|usage| self.counted(usage));
        prompt_ended(table, &session, Signal::Done { stop, usage });
        true
    }

    /// A report of tokens, with what it counts.
    fn counted(&self, usage: Usage) -> Usage {
        let scope = if self.has(Quirk::UsageOfLastCall) { UsageScope::Call } else { UsageScope::Turn };
        Usage { scope, ..usage }
    }

    fn name_tool(&self, call: &mut ToolCall) {
        if call.name.is_none()
            && self.has(Quirk::ToolNameInCallId)
            && let Some((name, _)) = call.id.as_str().split_once("__")
        {
            call.name = Some(name.into());
        }
    }
}

fn prompt_ended(table: &mut RoutingTable, session: &str, end: Signal) {
    let Some(at) = table.find(session) else { return };
    let mut held = Vec::new();
    if let Some(filter) = table.at(at).and_then(|slot| slot.repeat.as_mut()) {
        filter.reset(&mut held);
    }
    for update in held {
        table.push(at, Signal::Update(update));
    }
    table.push(at, end);
}

fn deliver(table: &mut RoutingTable, session: &str, update: Update, now: Instant, routed: &mut Routed) {
    let Some(at) = table.find(session) else {
        if !table.push_early(session, Signal::Update(update)) {
            routed.noise += 1;
        }
        return;
    };
    let Some(slot) = table.at(at) else { return };
    // Facts of the session hold whenever they come; the rest of a replay is in our own log.
    let is_fact = matches!(update.event, Event::Commands(_) | Event::Mode(_) | Event::Options(_));
    if slot.phase == Phase::Replaying && !is_fact {
        slot.replayed += 1;
        return;
    }
    match slot.repeat.as_mut() {
        None => table.push(at, Signal::Update(update)),
        Some(filter) => {
            let mut through = Vec::new();
            filter.pass(update, now, &mut through);
            for update in through {
                table.push(at, Signal::Update(update));
            }
        }
    }
}

/// The agent takes a question back. It still waits for an answer, which says just that.
fn withdraw(table: &mut RoutingTable, params: Option<&RawValue>, routed: &mut Routed) {
    let Some(request) = read::<wire::CancelRequest<'_>>(params) else { return };
    let Some((at, ask)) = table.take_ask(request.request_id) else { return };
    routed.replies.push(encode::error(request.request_id, encode::REQUEST_CANCELLED, "the request was taken back"));
    let event = Event::Answered { ask, answer: Answer::Cancelled, by: AnsweredBy::Cancel };
    table.push(at, Signal::Update(Update::ours(event)));
}

fn framed(event: Event, frame: Bytes) -> Update {
    Update { event, frame: Some(Frame { dialect: Dialect::Acp, bytes: frame }) }
}

fn mode_update(text: &Text) -> Option<Arc<str>> {
    if text.len() > 64 {
        return None;
    }
    let text = text.to_str();
    let mode = text.strip_prefix("[MODE_UPDATE] ")?;
    (!mode.is_empty() && mode.chars().all(|character| character.is_ascii_alphanumeric())).then(|| mode.into())
}

/// A thought without a subject begins with the markup of an empty one.
fn without_empty_subject(text: Text, frame: &Bytes) -> Text {
    const EMPTY: &str = "****\\n";
    match text.range_in(frame) {
        Some(range) if frame[range.clone()].starts_with(EMPTY.as_bytes()) => {
            Text::escaped(frame.slice(range.start + EMPTY.len()..range.end))
        }
        _ => text,
    }
}

fn read<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(params?.get()).ok()
}

fn noise(line: &[u8], routed: &mut Routed) {
    routed.noise += 1;
    if !line.iter().all(u8::is_ascii_whitespace) {
        tracing::debug!(line = gembridge_process::escape_excerpt(line, 200), "a line that is not a message");
    }
}
