//! Tool calls of the core as the two blocks that stand for them: the use and its result.

use gembridge_core::model::{ToolCall, ToolContent, ToolKind, ToolStatus};
use serde_json::{Map, Value, json};

use crate::content;
use crate::message::{Block, Body};

/// How a call came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The agent said so.
    Reported,
    /// Somebody said no, and the agent never spoke of it again.
    Refused,
    /// The turn ended first.
    Abandoned,
}

pub(crate) fn tool_use(call: &ToolCall) -> Block {
    Block::ToolUse { id: call.id.to_string(), name: name(call), input: input(call) }
}

pub(crate) fn tool_result(call: &ToolCall, end: End) -> Block {
    let content = match end {
        // What it has is what was asked about, not what came of it.
        End::Refused => Body::Text("the tool was refused".to_owned()),
        End::Reported => output(call).unwrap_or_else(|| Body::Text(String::new())),
        End::Abandoned => output(call).unwrap_or_else(|| Body::Text("the turn ended before the tool did".to_owned())),
    };
    let is_error = end != End::Reported || call.status == Some(ToolStatus::Failed);
    Block::ToolResult { tool_use_id: call.id.to_string(), content, is_error, exit_code: None }
}

fn output(call: &ToolCall) -> Option<Body> {
    let blocks: Vec<_> = call.content.iter().flatten().map(result_block).collect();
    if !blocks.is_empty() {
        return Some(Body::plain_where_possible(blocks));
    }
    Some(Body::Text(match content::value(call.output.as_ref()?) {
        Value::String(text) => text,
        output => output.to_string(),
    }))
}

fn name(call: &ToolCall) -> String {
    let by_kind = || match call.kind {
        Some(ToolKind::Read) => "read",
        Some(ToolKind::Edit) => "edit",
        Some(ToolKind::Delete) => "delete",
        Some(ToolKind::Move) => "move",
        Some(ToolKind::Search) => "search",
        Some(ToolKind::Execute) => "execute",
        Some(ToolKind::Think) => "think",
        Some(ToolKind::Fetch) => "fetch",
        Some(ToolKind::SwitchMode) => "switch_mode",
        Some(ToolKind::Other) | None => "tool",
    };
    call.name.as_deref().unwrap_or_else(by_kind).to_owned()
}

/// The arguments; for an agent that does not tell them, what it does tell.
fn input(call: &ToolCall) -> Value {
    if let Some(input) = &call.input {
        return content::value(input);
    }
    let mut told = Map::new();
    let texts = [("title", &call.title), ("description", &call.description), ("working_dir", &call.working_dir)];
    for (key, text) in texts {
        if let Some(text) = text.as_deref().filter(|text| !text.is_empty()) {
            told.insert(key.to_owned(), text.into());
        }
    }
    if let Some(locations) = call.locations.as_deref().filter(|locations| !locations.is_empty()) {
        let location = |path: &str, line: Option<u64>| match line {
            Some(line) => json!({ "path": path, "line": line }),
            None => json!({ "path": path }),
        };
        let locations: Vec<_> = locations.iter().map(|place| location(&place.path, place.line)).collect();
        told.insert("locations".to_owned(), locations.into());
    }
    Value::Object(told)
}

fn result_block(part: &ToolContent) -> Block {
    match part {
        ToolContent::Content(content) => content::block(content),
        ToolContent::Diff { path, old, new } => Block::Diff {
            path: path.to_string(),
            old_text: old.as_ref().map(content::owned),
            new_text: content::owned(new),
        },
        ToolContent::Terminal(id) => Block::Terminal { terminal_id: id.to_string() },
        ToolContent::Other { kind, body } => Block::Other { kind: kind.to_string(), body: content::value(body) },
    }
}
