//! A tool call: a line when it begins, a line with its result when it is over.

use gembridge_core::model::{Content, ToolCall, ToolContent, ToolKind, ToolStatus};

use super::style::Style;
use super::{content, diff};
use crate::terminal::escape;

/// Lines of a tool's output that are shown.
const MOST_OUTPUT: usize = 5;

pub fn begun(call: &ToolCall, style: Style) -> String {
    headline(call, &style.yellow("◐"), style)
}

pub fn over(call: &ToolCall, style: Style) -> String {
    let icon = match call.status {
        Some(ToolStatus::Failed) => style.red("✗"),
        Some(ToolStatus::Completed) => style.green("✓"),
        Some(ToolStatus::Pending | ToolStatus::InProgress) | None => style.yellow("◐"),
    };
    let mut out = headline(call, &icon, style);
    for part in call.content.iter().flatten() {
        out.push_str(&result(part, style));
    }
    out
}

/// What a call is, without what the agent packed into its title beside it.
pub fn title(call: &ToolCall) -> String {
    let full = call.title.as_deref().or(call.name.as_deref()).unwrap_or_else(|| call.kind.map_or("tool", kind));
    let mut title = full;
    if let Some(at) = call.working_dir.as_ref().and_then(|_| title.find(" [current working directory ")) {
        title = &title[..at];
    }
    if let Some(description) = call.description.as_deref().filter(|description| !description.is_empty()) {
        title = title.strip_suffix(&format!("({description})")).unwrap_or(title);
    }
    let title = title.trim();
    escape::line(if title.is_empty() { full } else { title }).into_owned()
}

pub fn kind(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "execute",
        ToolKind::Think => "think",
        ToolKind::Fetch => "fetch",
        ToolKind::SwitchMode => "switch mode",
        ToolKind::Other => "tool",
    }
}

fn headline(call: &ToolCall, icon: &str, style: Style) -> String {
    let mut line = format!("{icon} {}", title(call));
    if let Some(description) = call.description.as_deref().filter(|description| !description.is_empty()) {
        line.push_str(&style.dim(&format!(" — {}", escape::line(description))));
    }
    if let Some(folder) = &call.working_dir {
        line.push_str(&style.dim(&format!(" in {}", escape::line(folder))));
    }
    line.push('\n');
    line
}

fn result(part: &ToolContent, style: Style) -> String {
    match part {
        ToolContent::Diff { path, old, new } => {
            let old = old.as_ref().map(gembridge_core::model::Text::to_str);
            diff::lines(path, old.as_deref(), &new.to_str(), style)
        }
        ToolContent::Content(Content::Text(text)) => output(&text.to_str(), style),
        ToolContent::Content(other) => format!("    {}\n", content::line(other)),
        ToolContent::Terminal(_) | ToolContent::Other { .. } => String::new(),
    }
}

fn output(text: &str, style: Style) -> String {
    let lines: Vec<_> = text.lines().collect();
    let mut out = String::new();
    for line in lines.iter().take(MOST_OUTPUT) {
        out.push_str(&style.dim(&format!("    {}", escape::line(line))));
        out.push('\n');
    }
    if lines.len() > MOST_OUTPUT {
        out.push_str(&style.dim(&format!("    … {} more lines", lines.len() - MOST_OUTPUT)));
        out.push('\n');
    }
    out
}
