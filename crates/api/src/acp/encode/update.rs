//! Events that no frame of the agent stands for, as the updates that the protocol has for them.

use gembridge_core::model::{
    Command, Event, Opaque, PlanEntry, PlanPriority, PlanStatus, ReturnOutcome, ToolCall, ToolContent, ToolKind,
    ToolStatus,
};
use serde_json::{Value, json};

use super::content;

/// The update, and what goes beside the marks; `None` where the protocol has no word for it.
pub fn of(event: &Event) -> Option<(Value, &'static str)> {
    let chunk = |kind: &str, content: Value| json!({ "sessionUpdate": kind, "content": content });
    let text = |text: &gembridge_core::model::Text| json!({ "type": "text", "text": text.to_str() });
    Some((
        match event {
            Event::Text(piece) => chunk("agent_message_chunk", text(piece)),
            Event::Thought(piece) => chunk("agent_thought_chunk", text(piece)),
            Event::Content(block) => chunk("agent_message_chunk", content::block(block)),
            Event::ToolCall(call) => {
                let mut update = tool(call);
                // A call is announced with its title; an update names what changed.
                let kind = if call.title.is_some() { "tool_call" } else { "tool_call_update" };
                update["sessionUpdate"] = json!(kind);
                update
            }
            Event::Plan(entries) => {
                json!({ "sessionUpdate": "plan", "entries": entries.iter().map(plan_entry).collect::<Vec<_>>() })
            }
            Event::Context { used, size } => json!({ "sessionUpdate": "usage_update", "used": used, "size": size }),
            Event::Mode(mode) => json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode }),
            Event::Commands(commands) => json!({
                "sessionUpdate": "available_commands_update",
                "availableCommands": commands.iter().map(command).collect::<Vec<_>>(),
            }),
            Event::Options(options) => {
                json!({ "sessionUpdate": "config_option_update", "configOptions": opaque(options) })
            }
            Event::Title(title) => json!({ "sessionUpdate": "session_info_update", "title": title }),
            Event::Called(call) => {
                let update = json!({
                    "sessionUpdate": "tool_call",
                    "toolCallId": call.id.to_string(),
                    "title": call.tool,
                    "kind": "other",
                    "status": "in_progress",
                    "rawInput": opaque(&call.arguments),
                });
                return Some((update, CLIENT_TOOL));
            }
            Event::Returned { call, result, .. } => {
                let status = match result.outcome {
                    ReturnOutcome::Done => "completed",
                    ReturnOutcome::Failed => "failed",
                };
                let content: Vec<_> = result
                    .content
                    .iter()
                    .map(|block| json!({ "type": "content", "content": content::block(block) }))
                    .collect();
                let update = json!({
                    "sessionUpdate": "tool_call_update",
                    "toolCallId": call.to_string(),
                    "status": status,
                    "content": content,
                });
                return Some((update, CLIENT_TOOL));
            }
            _ => return None,
        },
        "",
    ))
}

/// The call is run by a client, not by the agent.
const CLIENT_TOOL: &str = ",\"clientTool\":true";

/// A tool call, or what changed in it.
pub fn tool(call: &ToolCall) -> Value {
    let mut update = json!({ "toolCallId": call.id.as_str() });
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            update[name] = value;
        }
    };
    set("name", call.name.as_ref().map(|name| json!(name)));
    set("title", call.title.as_ref().map(|title| json!(title)));
    set("kind", call.kind.map(|kind| json!(kind_name(kind))));
    set("status", call.status.map(|status| json!(status_name(status))));
    set("content", call.content.as_ref().map(|all| all.iter().map(tool_content).collect()));
    let location = |at: &gembridge_core::model::Location| match at.line {
        Some(line) => json!({ "path": at.path, "line": line }),
        None => json!({ "path": at.path }),
    };
    set("locations", call.locations.as_ref().map(|all| all.iter().map(location).collect()));
    set("rawInput", call.input.as_ref().map(opaque));
    set("rawOutput", call.output.as_ref().map(opaque));
    update
}

fn tool_content(item: &ToolContent) -> Value {
    match item {
        ToolContent::Content(block) => json!({ "type": "content", "content": content::block(block) }),
        ToolContent::Diff { path, old, new } => json!({
            "type": "diff",
            "path": path,
            "oldText": old.as_ref().map(|old| old.to_str().into_owned()),
            "newText": new.to_str(),
        }),
        ToolContent::Terminal(id) => json!({ "type": "terminal", "terminalId": id }),
        ToolContent::Other { body, .. } => opaque(body),
    }
}

fn kind_name(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "execute",
        ToolKind::Think => "think",
        ToolKind::Fetch => "fetch",
        ToolKind::SwitchMode => "switch_mode",
        ToolKind::Other => "other",
    }
}

fn status_name(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Pending => "pending",
        ToolStatus::InProgress => "in_progress",
        ToolStatus::Completed => "completed",
        ToolStatus::Failed => "failed",
    }
}

fn plan_entry(entry: &PlanEntry) -> Value {
    let priority = match entry.priority {
        PlanPriority::High => "high",
        PlanPriority::Medium => "medium",
        PlanPriority::Low => "low",
    };
    let status = match entry.status {
        PlanStatus::Pending => "pending",
        PlanStatus::InProgress => "in_progress",
        PlanStatus::Completed => "completed",
    };
    json!({ "content": entry.content, "priority": priority, "status": status })
}

fn command(command: &Command) -> Value {
    let mut value = json!({ "name": command.name, "description": command.description });
    if let Some(hint) = &command.hint {
        value["input"] = json!({ "hint": hint });
    }
    value
}

fn opaque(opaque: &Opaque) -> Value {
    serde_json::from_slice(&opaque.0).unwrap_or(Value::Null)
}
