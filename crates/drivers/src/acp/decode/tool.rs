//! Tool calls, and the permissions they ask for.

use gembridge_core::model::{
    AskBody, AskOption, Content, Location, OptionKind, Subject, ToolCall, ToolCallId, ToolContent, ToolKind, ToolStatus,
};

use serde_json::value::RawValue;

use super::update::{opaque, tool_content};
use crate::acp::wire;
use crate::title;

pub(in crate::acp) fn tool_call(call: &wire::ToolCall<'_>) -> ToolCall {
    let content: Option<Vec<ToolContent>> =
        call.content.as_ref().map(|items| items.iter().map(|raw| tool_content(raw)).collect());
    let text = content.as_deref().and_then(first_text);
    let parsed = title::parse(text.as_deref(), call.title.as_deref());
    ToolCall {
        id: ToolCallId::new(call.id.as_str()),
        name: call.name.as_deref().map(Into::into).or_else(|| meta(call).tool_name.map(Into::into)),
        title: call.title.as_deref().map(Into::into),
        description: parsed.description.map(Into::into),
        working_dir: parsed.working_dir.map(Into::into),
        kind: call.kind.as_deref().map(kind),
        status: call.status.as_deref().and_then(status),
        content,
        locations: call.locations.as_ref().map(|all| all.iter().map(location).collect()),
        input: call.raw_input.map(opaque),
        output: call.raw_output.map(opaque),
    }
}

fn meta(call: &wire::ToolCall<'_>) -> wire::ToolMeta {
    call.meta.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// The MCP server whose tool an update announces, where the agent says so.
pub(in crate::acp) fn announced_server(raw: &RawValue) -> Option<(ToolCallId, String)> {
    let call: wire::ToolCall<'_> = serde_json::from_str(raw.get()).ok()?;
    let input: wire::McpInput = serde_json::from_str(call.raw_input?.get()).ok()?;
    meta(&call).is_mcp_tool_call.then(|| (ToolCallId::new(call.id.as_str()), input.server))
}

/// Whether a permission says of itself that it is about a tool of an MCP server.
pub(in crate::acp) fn is_mcp_approval(request: &wire::PermissionRequest<'_>) -> bool {
    let meta = request.meta.and_then(|raw| serde_json::from_str::<wire::PermissionMeta>(raw.get()).ok());
    meta.is_some_and(|meta| meta.is_mcp_tool_approval)
}

pub(in crate::acp) fn permission(request: &wire::PermissionRequest<'_>) -> AskBody {
    let options = request.options.iter().map(|option| AskOption {
        id: option.option_id.as_str().into(),
        name: option.name.as_str().into(),
        kind: option_kind(&option.kind),
    });
    AskBody::Permission {
        tool: Box::new(tool_call(&request.tool_call)),
        options: options.collect(),
        subject: Subject::AgentTool,
    }
}

fn first_text(content: &[ToolContent]) -> Option<String> {
    content.iter().find_map(|item| match item {
        ToolContent::Content(Content::Text(text)) => Some(text.to_str().into_owned()),
        _ => None,
    })
}

fn location(location: &wire::Location) -> Location {
    Location { path: location.path.as_str().into(), line: location.line }
}

fn kind(kind: &str) -> ToolKind {
    match kind {
        "read" => ToolKind::Read,
        "edit" => ToolKind::Edit,
        "delete" => ToolKind::Delete,
        "move" => ToolKind::Move,
        "search" => ToolKind::Search,
        "execute" => ToolKind::Execute,
        "think" => ToolKind::Think,
        "fetch" => ToolKind::Fetch,
        "switch_mode" => ToolKind::SwitchMode,
        _ => ToolKind::Other,
    }
}

fn status(status: &str) -> Option<ToolStatus> {
    Some(match status {
        "pending" => ToolStatus::Pending,
        "in_progress" => ToolStatus::InProgress,
        "completed" => ToolStatus::Completed,
        "failed" => ToolStatus::Failed,
        _ => return None,
    })
}

fn option_kind(kind: &str) -> OptionKind {
    match kind {
        "allow_once" => OptionKind::AllowOnce,
        "allow_always" => OptionKind::AllowAlways,
        "reject_once" => OptionKind::RejectOnce,
        "reject_always" => OptionKind::RejectAlways,
        _ => OptionKind::Unknown,
    }
}
