//! A session's records as messages: thoughts, then each call with its result, then text.

use std::collections::{HashMap, HashSet};

use gembridge_unified::{Block, Body, Role, UnifiedMessage};
use serde_json::Value;

use super::record::{Conversation, Record, usage};
use crate::blocks::{self, Part, Verdict};
use crate::json::Json;
use crate::output::Output;
use crate::session::Facts;

pub(super) fn messages(mut conversation: Conversation, out: &mut Output<'_>) -> Facts {
    let mut facts = std::mem::take(&mut conversation.facts);
    facts.usage = conversation.spent();
    let standing: Vec<_> = conversation.standing().map(|record| Parsed::of(record, out)).collect();
    let dropped: Vec<_> = conversation.dropped().map(|record| Parsed::of(record, out)).collect();
    let mut calls = Calls::of(&dropped, &standing);
    for record in &standing {
        if facts.project.is_none() {
            facts.project = workspace_of_context(&blocks::text(&record.content)).map(Into::into);
        }
        let message = match record.kind.as_str() {
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

/// A record with what messages are made from.
struct Parsed<'a> {
    record: &'a Record,
    kind: Json<'a>,
    content: Json<'a>,
    tool_calls: Json<'a>,
}

impl<'a> Parsed<'a> {
    fn of(record: &'a Record, out: &mut Output<'_>) -> Self {
        let mut field = |name| {
            record.field(name).unwrap_or_else(|error| {
                match record.line {
                    Some(line) => {
                        out.at_line(line);
                        out.damaged_line(&error);
                    }
                    None => out.damaged_file(&error),
                }
                Json::Null
            })
        };
        Self { record, kind: field("type"), content: field("content"), tool_calls: field("toolCalls") }
    }
}

/// What is known of tool calls over all records: a result stands beside its call, in a message of the user, or in both.
struct Calls<'a> {
    /// The calls as `toolCalls` has them, with their status.
    told: HashMap<&'a str, &'a Json<'a>>,
    /// Results out of messages of the user.
    returned: HashMap<&'a str, &'a Json<'a>>,
    /// Calls that some standing message makes.
    made: HashSet<&'a str>,
    /// Calls that were written already, and results without a call.
    written: HashSet<&'a str>,
}

impl<'a> Calls<'a> {
    fn of(dropped: &'a [Parsed<'a>], standing: &'a [Parsed<'a>]) -> Self {
        let mut calls =
            Self { told: HashMap::new(), returned: HashMap::new(), made: HashSet::new(), written: HashSet::new() };
        for record in dropped.iter().chain(standing) {
            for call in record.tool_calls.items() {
                calls.told.insert(call["id"].as_str().unwrap_or_default(), call);
            }
            for part in blocks::parts(&record.content) {
                if let Part::Response { id, response, .. } = part {
                    calls.returned.insert(id, response);
                }
            }
        }
        for record in standing {
            calls.made.extend(record.tool_calls.items().iter().filter_map(|call| call["id"].as_str()));
            calls.made.extend(blocks::parts(&record.content).iter().filter_map(|part| match part {
                Part::Call { id, .. } => *id,
                _ => None,
            }));
        }
        calls
    }

    /// The result of a call, or `None` for one that has none yet.
    fn result(&self, id: &str, own: Option<&Json<'_>>) -> Option<Block> {
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
        Some(blocks::tool_result(id, &Json::Text(shown.into()), &[], verdict))
    }

    /// A call and its result, the first time that it is met.
    fn write(&mut self, call: &Call<'a>, out: &Output<'_>, to: &mut Vec<Block>) {
        if self.written.insert(call.id) {
            to.push(out.tool_use(call.id, call.name, &Value::from(call.args.clone())));
            to.extend(self.result(call.id, call.told));
        }
    }
}

struct Call<'a> {
    id: &'a str,
    name: &'a str,
    args: &'a Json<'a>,
    told: Option<&'a Json<'a>>,
}

fn of_agent<'a>(record: &'a Parsed<'a>, calls: &mut Calls<'a>, out: &Output<'_>) -> Option<UnifiedMessage> {
    let parts = blocks::parts(&record.content);
    let mut written = Vec::new();
    // The content is the truth where it has thoughts or calls; the fields beside it are for where it has none.
    let in_content: Vec<_> =
        parts.iter().filter_map(|part| if let Part::Thought(text) = part { Some(*text) } else { None }).collect();
    if in_content.is_empty() {
        written.extend(record.record.get("thoughts").items().iter().map(thought));
    } else {
        written.extend(in_content.iter().map(|text| Block::Thinking { thinking: (*text).to_owned() }));
    }
    for part in &parts {
        if let Part::Call { id, name, args } = part {
            calls.write(&Call { id: id.unwrap_or(name), name, args, told: None }, out, &mut written);
        }
    }
    for call in record.tool_calls.items() {
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
    let usage = usage(record.record);
    if written.is_empty() && usage.is_none() {
        return None;
    }
    let mut message = message(record, Role::Assistant, Body::Blocks(written), out);
    message.model = record.record.get("model").into_text();
    message.usage = usage;
    Some(message)
}

/// What a person typed; what the program put before it is a message of the system.
fn of_user<'a>(record: &'a Parsed<'a>, calls: &mut Calls<'a>, out: &Output<'_>) -> Option<UnifiedMessage> {
    let (mut typed, mut added) = (Vec::new(), Vec::new());
    for part in blocks::parts(&record.content) {
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

fn of_program(record: &Parsed<'_>, out: &Output<'_>) -> Option<UnifiedMessage> {
    let text = blocks::text(&record.content);
    (!text.is_empty()).then(|| message(record, Role::System, Body::Text(text), out))
}

fn message(parsed: &Parsed<'_>, role: Role, content: Body, out: &Output<'_>) -> UnifiedMessage {
    let record = parsed.record;
    UnifiedMessage {
        id: record.get("id").into_text().unwrap_or_default(),
        role,
        content,
        timestamp: record.get("timestamp").millis().unwrap_or(0),
        tool: out.agent.name().to_owned(),
        model: None,
        usage: None,
        original: out.keeps_originals().then(|| record.original()),
    }
}

fn thought(thought: &Json<'_>) -> Block {
    let field = |name: &str| thought[name].as_str().unwrap_or_default();
    let thinking = match (field("subject"), field("description")) {
        ("", description) => description.to_owned(),
        (subject, "") => subject.to_owned(),
        (subject, description) => format!("{subject}: {description}"),
    };
    Block::Thinking { thinking }
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
