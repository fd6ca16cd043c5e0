//! Sessions of OpenCode: rows of its database, or JSON files in folders in older versions. A message and its parts are
//! the same in both.

mod database;
pub(crate) mod find;
mod folders;

use gembridge_unified::{Block, Body, Original, Role, Source as Origin, UnifiedMessage, UnifiedUsage};
use serde_json::{Value, json};

use crate::output::Output;
use crate::session::{Facts, Located, Source};
use crate::time;

pub(crate) fn read(session: &Located, out: &mut Output<'_>) -> Facts {
    match &session.source {
        Source::Database(path) => database::read(path, &session.id, out),
        Source::Folder(storage) => folders::read(storage, &session.id, out),
        Source::Files(_) | Source::Supplied(_) => Facts::default(),
    }
}

/// What is known of the session itself, by the names of its JSON files.
fn facts(session: &Value) -> Facts {
    let text = |field: &str| session[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let mut facts = Facts {
        title: text("title"),
        version: text("version"),
        project: text("directory").map(Into::into),
        ..Facts::default()
    };
    facts.seen_at(time::millis(&session["time"]["created"]));
    facts.seen_at(time::millis(&session["time"]["updated"]));
    facts
}

/// One message with its parts in their order.
pub(crate) fn message(id: &str, info: &Value, parts: &[Value], facts: &mut Facts, out: &mut Output<'_>) {
    let is_agent = info["role"] == "assistant";
    let mut blocks = Vec::new();
    for part in parts {
        add(part, &mut blocks, out);
    }
    if let Some(error) = info["error"]["data"]["message"].as_str().or_else(|| info["error"]["name"].as_str()) {
        blocks.push(Block::Text { text: error.to_owned() });
    }
    let usage = if is_agent { usage(&info["tokens"]) } else { None };
    if let Some(usage) = &usage {
        facts.usage.add(usage);
    }
    if blocks.is_empty() && usage.is_none() {
        return;
    }
    let model = if is_agent { info["modelID"].as_str().map(str::to_owned) } else { None };
    if model.is_some() {
        facts.model.clone_from(&model);
    }
    let (role, content) = if is_agent {
        (Role::Assistant, Body::Blocks(blocks))
    } else {
        (Role::User, Body::plain_where_possible(blocks))
    };
    out.message(UnifiedMessage {
        id: id.to_owned(),
        role,
        content,
        timestamp: time::millis(&info["time"]["created"]).unwrap_or(0),
        tool: out.agent.name().to_owned(),
        model,
        usage,
        original: out.keeps_originals().then(|| Original::Tree(json!({ "info": info, "parts": parts }))),
    });
}

fn add(part: &Value, blocks: &mut Vec<Block>, out: &Output<'_>) {
    let text = |field: &str| part[field].as_str().unwrap_or_default().to_owned();
    match part["type"].as_str().unwrap_or_default() {
        "text" if !text("text").is_empty() => blocks.push(Block::Text { text: text("text") }),
        "reasoning" if !text("text").is_empty() => blocks.push(Block::Thinking { thinking: text("text") }),
        "tool" => {
            let state = &part["state"];
            blocks.push(out.tool_use(&text("callID"), &text("tool"), &state["input"]));
            blocks.extend(result(&text("callID"), state));
        }
        "file" => blocks.push(file(&text("url"), &text("mime"), &text("filename"))),
        "subtask" | "patch" | "agent" | "compaction" | "retry" => {
            blocks.push(Block::Other { kind: text("type"), body: part.clone() });
        }
        // Empty texts, and marks such as the beginning and the end of a step.
        _ => {}
    }
}

/// A call that waits or runs has no result.
fn result(id: &str, state: &Value) -> Option<Block> {
    let (field, is_error) = match state["status"].as_str()? {
        "completed" => ("output", false),
        "error" => ("error", true),
        _ => return None,
    };
    let content = match &state[field] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        structured => structured.to_string(),
    };
    Some(Block::ToolResult {
        tool_use_id: id.to_owned(),
        content: Body::Text(content),
        is_error,
        exit_code: state["metadata"]["exit"].as_i64(),
    })
}

fn file(url: &str, media_type: &str, name: &str) -> Block {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((_, data)) => {
            let source = Origin::Base64 { media_type: media_type.to_owned(), data: data.to_owned() };
            if media_type.starts_with("image/") {
                Block::Image { source }
            } else {
                Block::Document { source, title: name.to_owned() }
            }
        }
        None => Block::ResourceLink { uri: url.to_owned(), name: name.to_owned() },
    }
}

/// Tokens as OpenCode counts them: its input leaves out what was cached.
fn usage(tokens: &Value) -> Option<UnifiedUsage> {
    tokens.is_object().then(|| UnifiedUsage {
        input_tokens: tokens["input"].as_u64(),
        output_tokens: tokens["output"].as_u64(),
        thought_tokens: tokens["reasoning"].as_u64(),
        total_tokens: tokens["total"].as_u64(),
        cache_creation_tokens: tokens["cache"]["write"].as_u64(),
        cache_read_tokens: tokens["cache"]["read"].as_u64(),
    })
}
