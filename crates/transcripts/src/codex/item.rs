//! One item of the conversation as Codex and its model exchange them.

use gembridge_unified::{Block, Body, Role, Source};
use serde_json::Value;

use crate::output::Output;

pub(super) enum Item {
    Said {
        role: Role,
        blocks: Vec<Block>,
    },
    /// What a tool returned.
    Returned(Block),
    /// Nothing of the conversation.
    Nothing,
}

pub(super) fn item(item: &Value, out: &Output<'_>) -> Item {
    let kind = item["type"].as_str().unwrap_or_default();
    match kind {
        "message" => said(item),
        "reasoning" => reasoning(item),
        "function_call" => called(item, &arguments(&item["arguments"]), out),
        "custom_tool_call" => called(item, &item["input"], out),
        "local_shell_call" => {
            let id = item["call_id"].as_str().or_else(|| item["id"].as_str()).unwrap_or_default();
            of_agent(vec![out.tool_use(id, "local_shell", &item["action"])])
        }
        "web_search_call" => {
            let id = item["id"].as_str().unwrap_or_default();
            of_agent(vec![out.tool_use(id, "web_search", &item["action"])])
        }
        "function_call_output" | "custom_tool_call_output" => Item::Returned(result(item)),
        // Calls of tools that this reader has no word for, whole.
        _ if kind.ends_with("_call") => of_agent(vec![other(kind, item)]),
        _ => Item::Nothing,
    }
}

fn of_agent(blocks: Vec<Block>) -> Item {
    Item::Said { role: Role::Assistant, blocks }
}

fn said(item: &Value) -> Item {
    let parts = item["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let blocks: Vec<_> = parts.iter().map(part).collect();
    if blocks.is_empty() {
        return Item::Nothing;
    }
    let role = match item["role"].as_str() {
        Some("assistant") => Role::Assistant,
        Some("user") if !is_added(&blocks) => Role::User,
        _ => Role::System,
    };
    Item::Said { role, blocks }
}

/// What Codex itself says in the name of the user.
fn is_added(blocks: &[Block]) -> bool {
    const MARKS: [&str; 6] = [
        "<environment_context>",
        "<user_instructions>",
        "<permissions instructions>",
        "<turn_aborted>",
        "<skills_instructions>",
        "# AGENTS.md instructions",
    ];
    blocks.iter().all(|block| match block {
        Block::Text { text } => MARKS.iter().any(|mark| text.trim_start().starts_with(mark)),
        _ => false,
    })
}

fn part(part: &Value) -> Block {
    match part["type"].as_str().unwrap_or_default() {
        "input_text" | "output_text" | "text" => Block::Text { text: text(&part["text"]) },
        "refusal" => Block::Text { text: text(&part["refusal"]) },
        "input_image" => Block::Image { source: image(part["image_url"].as_str().unwrap_or_default()) },
        kind => other(kind, part),
    }
}

/// `data:image/png;base64,…`, or an address.
fn image(url: &str) -> Source {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((media_type, data)) => Source::Base64 { media_type: media_type.to_owned(), data: data.to_owned() },
        None => Source::Url { url: url.to_owned() },
    }
}

/// What the model let be seen of its reasoning; the whole of it is encrypted.
fn reasoning(item: &Value) -> Item {
    let parts = [&item["summary"], &item["content"]].into_iter().filter_map(Value::as_array).flatten();
    let texts = parts.filter_map(|part| part["text"].as_str()).filter(|text| !text.is_empty());
    let blocks: Vec<_> = texts.map(|text| Block::Thinking { thinking: text.to_owned() }).collect();
    if blocks.is_empty() { Item::Nothing } else { of_agent(blocks) }
}

fn called(item: &Value, input: &Value, out: &Output<'_>) -> Item {
    let id = item["call_id"].as_str().or_else(|| item["id"].as_str()).unwrap_or_default();
    of_agent(vec![out.tool_use(id, item["name"].as_str().unwrap_or("tool"), input)])
}

/// Arguments are JSON in a string.
fn arguments(arguments: &Value) -> Value {
    let parsed = arguments.as_str().and_then(|text| serde_json::from_str(text).ok());
    parsed.unwrap_or_else(|| arguments.clone())
}

fn result(item: &Value) -> Block {
    let output = &item["output"];
    // Some tools return an object in a string: `{"output": …, "metadata": {"exit_code": …}}`.
    let packed = output.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let packed = packed.filter(|packed| packed.get("output").is_some());
    let content = match (packed.as_ref().map_or(output, |packed| &packed["output"]), output["content"].as_str()) {
        (_, Some(content)) => Body::Text(content.to_owned()),
        (Value::Array(parts), _) => Body::plain_where_possible(parts.iter().map(part).collect()),
        (Value::String(text), _) => Body::Text(text.clone()),
        (structured, _) => Body::Text(structured.to_string()),
    };
    let exit_code = match (&packed, &content) {
        (Some(packed), _) => packed["metadata"]["exit_code"].as_i64(),
        (None, Body::Text(text)) => exit_code(text),
        (None, Body::Blocks(_)) => None,
    };
    let is_error = output["success"].as_bool() == Some(false) || item["status"] == "failed";
    Block::ToolResult { tool_use_id: text(&item["call_id"]), content, is_error, exit_code }
}

/// Stands before the output of a command.
fn exit_code(output: &str) -> Option<i64> {
    let mut head = output.lines().take_while(|line| *line != "Output:");
    head.find_map(|line| {
        let code = line.strip_prefix("Process exited with code ").or_else(|| line.strip_prefix("Exit code: "))?;
        code.trim().parse().ok()
    })
}

fn other(kind: &str, body: &Value) -> Block {
    Block::Other { kind: kind.to_owned(), body: body.clone() }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
