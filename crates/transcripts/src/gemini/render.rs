//! A session's records as messages: thoughts, then each call with its result, then text.

use std::collections::{HashMap, HashSet};

use gembridge_unified::{Block, Body, Role, UnifiedMessage};
use serde_json::Value;

use super::record::{Conversation, Record, usage};
use crate::blocks::{self, Part, Verdict};
use crate::output::Output;
use crate::session::Facts;
use crate::time;

pub(super) fn messages(mut conversation: Conversation, out: &mut Output<'_>) -> Facts {
    let mut facts = std::mem::take(&mut conversation.facts);
    facts.usage = conversation.spent();
    let mut calls = Calls::of(&conversation);
    for record in conversation.standing() {
        if facts.project.is_none() {
            facts.project = workspace_of_context(&blocks::text(content(record))).map(Into::into);
        }
        let message = match record.get("type").and_then(Value::as_str) {
            Some("user") => of_user(record, &mut calls, out),
            Some("gemini") => of_agent(record, &mut calls, out),
            // Notes of the program itself: `info`, `warning`, `error`.
            _ => of_program(record, out),
        };
        if let Some(message) = message {
            if message.model.is_some() {
                facts.model.clone_from(&message.model);
            }
            out.message(message);
        }
    }
    facts
}

/// What is known of tool calls over all records: a result stands beside its call, in a message of the user, or in both.
struct Calls<'a> {
    /// The calls as `toolCalls` has them, with their status.
    told: HashMap<&'a str, &'a Value>,
    /// Results out of messages of the user.
    returned: HashMap<&'a str, &'a Value>,
    /// Calls that some standing message makes.
    made: HashSet<&'a str>,
    /// Calls that were written already, and results without a call.
    written: HashSet<&'a str>,
}

impl<'a> Calls<'a> {
    fn of(conversation: &'a Conversation) -> Self {
        let mut calls =
            Self { told: HashMap::new(), returned: HashMap::new(), made: HashSet::new(), written: HashSet::new() };
        for record in conversation.all() {
            for call in tool_calls(record) {
                calls.told.insert(call["id"].as_str().unwrap_or_default(), call);
            }
            for part in blocks::parts(content(record)) {
                if let Part::Response { id, response, .. } = part {
                    calls.returned.insert(id, response);
                }
            }
        }
        for record in conversation.standing() {
            calls.made.extend(tool_calls(record).iter().filter_map(|call| call["id"].as_str()));
            calls.made.extend(blocks::parts(content(record)).iter().filter_map(|part| match part {
                Part::Call { id, .. } => *id,
                _ => None,
            }));
        }
        calls
    }

    /// The result of a call, or `None` for one that has none yet.
    fn result(&self, id: &str, own: Option<&Value>) -> Option<Block> {
        let told = own.or_else(|| self.told.get(id).copied());
        let status = told.and_then(|call| call["status"].as_str()).unwrap_or_default();
        let verdict = if matches!(status, "error" | "cancelled") { Verdict::Failed } else { Verdict::Untold };
        let parts = told.map(|call| blocks::parts(&call["result"])).unwrap_or_default();
        let response = parts.iter().find_map(|part| match part {
            Part::Response { response, .. } => Some(*response),
            _ => None,
        });
        if let Some(response) = response {
            let beside: Vec<_> =
                parts.iter().filter_map(|part| if let Part::Other(part) = part { Some(*part) } else { None }).collect();
            return Some(blocks::tool_result(id, response, &beside, verdict));
        }
        if let Some(response) = self.returned.get(id) {
            return Some(blocks::tool_result(id, response, &[], verdict));
        }
        // A call that ended without a response: what a person was shown, or how it ended.
        if !matches!(status, "success" | "error" | "cancelled") {
            return None;
        }
        let shown = told.and_then(|call| call["resultDisplay"].as_str()).unwrap_or(status);
        Some(blocks::tool_result(id, &Value::String(shown.to_owned()), &[], verdict))
    }

    /// A call and its result, the first time that it is met.
    fn write(&mut self, call: &Call<'a>, out: &Output<'_>, to: &mut Vec<Block>) {
        if self.written.insert(call.id) {
            to.push(out.tool_use(call.id, call.name, call.args));
            to.extend(self.result(call.id, call.told));
        }
    }
}

struct Call<'a> {
    id: &'a str,
    name: &'a str,
    args: &'a Value,
    told: Option<&'a Value>,
}

fn of_agent<'a>(record: &'a Record, calls: &mut Calls<'a>, out: &Output<'_>) -> Option<UnifiedMessage> {
    let parts = blocks::parts(content(record));
    let mut written = Vec::new();
    // The content is the truth where it has thoughts or calls; the fields beside it are for where it has none.
    let in_content: Vec<_> =
        parts.iter().filter_map(|part| if let Part::Thought(text) = part { Some(*text) } else { None }).collect();
    if in_content.is_empty() {
        let thoughts = record.get("thoughts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        written.extend(thoughts.iter().map(thought));
    } else {
        written.extend(in_content.iter().map(|text| Block::Thinking { thinking: (*text).to_owned() }));
    }
    for part in &parts {
        if let Part::Call { id, name, args } = part {
            calls.write(&Call { id: id.unwrap_or(name), name, args, told: None }, out, &mut written);
        }
    }
    for call in tool_calls(record) {
        let name = call["name"].as_str().unwrap_or("tool");
        let id = call["id"].as_str().unwrap_or(name);
        calls.write(&Call { id, name, args: &call["args"], told: Some(call) }, out, &mut written);
    }
    for part in &parts {
        match part {
            Part::Text(text) if !text.is_empty() => written.push(Block::Text { text: (*text).to_owned() }),
            Part::Other(part) => written.push(blocks::other(part)),
            _ => {}
        }
    }
    let usage = usage(record);
    if written.is_empty() && usage.is_none() {
        return None;
    }
    let mut message = message(record, Role::Assistant, Body::Blocks(written), out);
    message.model = record.get("model").and_then(Value::as_str).map(str::to_owned);
    message.usage = usage;
    Some(message)
}

/// What a person typed; what the program put before it is a message of the system.
fn of_user<'a>(record: &'a Record, calls: &mut Calls<'a>, out: &Output<'_>) -> Option<UnifiedMessage> {
    let (mut typed, mut added) = (Vec::new(), Vec::new());
    for part in blocks::parts(content(record)) {
        match part {
            Part::Response { id, .. } if calls.made.contains(id) || !calls.written.insert(id) => {}
            Part::Response { id, .. } => typed.extend(calls.result(id, None)),
            Part::Text(text) if is_context(text) => added.push(Block::Text { text: text.to_owned() }),
            part => typed.extend(blocks::block(&part, out)),
        }
    }
    let (role, blocks) = if typed.is_empty() { (Role::System, added) } else { (Role::User, typed) };
    (!blocks.is_empty()).then(|| message(record, role, Body::plain_where_possible(blocks), out))
}

fn of_program(record: &Record, out: &Output<'_>) -> Option<UnifiedMessage> {
    let text = blocks::text(content(record));
    (!text.is_empty()).then(|| message(record, Role::System, Body::Text(text), out))
}

fn message(record: &Record, role: Role, content: Body, out: &Output<'_>) -> UnifiedMessage {
    UnifiedMessage {
        id: record.get("id").and_then(Value::as_str).unwrap_or_default().to_owned(),
        role,
        content,
        timestamp: record.get("timestamp").and_then(time::millis).unwrap_or(0),
        tool: out.agent.name().to_owned(),
        model: None,
        usage: None,
        original: if out.keeps_originals() { Some(Value::Object(record.clone())) } else { None },
    }
}

fn thought(thought: &Value) -> Block {
    let field = |name: &str| thought[name].as_str().unwrap_or_default();
    let thinking = match (field("subject"), field("description")) {
        ("", description) => description.to_owned(),
        (subject, "") => subject.to_owned(),
        (subject, description) => format!("{subject}: {description}"),
    };
    Block::Thinking { thinking }
}

fn content(record: &Record) -> &Value {
    record.get("content").unwrap_or(&Value::Null)
}

fn tool_calls(record: &Record) -> &[Value] {
    record.get("toolCalls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// What Gemini CLI itself puts before the first prompt.
fn is_context(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("<session_context>") || text.starts_with("<hook_context>")
}

/// The folder that the program told the model it works in.
pub(super) fn workspace_of_context(text: &str) -> Option<&str> {
    if !is_context(text) {
        return None;
    }
    let (_, list) = text.split_once("**Workspace Directories:**")?;
    let folder = list.trim_start().strip_prefix("- ")?.lines().next()?.trim();
    folder.starts_with('/').then_some(folder)
}
