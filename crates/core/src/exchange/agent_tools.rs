//! What the agent's own tools gave back, as text before the answer: a heading and a quotation. Only where the operator
//! wants it; they are never the client's tool calls.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::model::{Content, ToolCall, ToolCallId, ToolContent, ToolStatus};

#[derive(Debug, Default)]
pub(super) struct ToolResults {
    open: HashMap<ToolCallId, ToolCall>,
}

impl ToolResults {
    /// The text of a call that is over with this update.
    pub(super) fn update(&mut self, call: &ToolCall) -> Option<String> {
        let known = self.open.entry(call.id.clone()).or_insert_with(|| ToolCall::update(call.id.clone()));
        known.merge(call);
        if !known.status.is_some_and(ToolStatus::is_final) {
            return None;
        }
        self.open.remove(&call.id).map(|call| render(&call))
    }
}

fn render(call: &ToolCall) -> String {
    let title = call.title.as_deref().or(call.name.as_deref()).unwrap_or("tool");
    let failed = if call.status == Some(ToolStatus::Failed) { " (failed)" } else { "" };
    let mut text = format!("### {}{failed}\n\n", title.replace(['\n', '\r'], " "));
    let mut quoted = false;
    for piece in call.content.iter().flatten().filter_map(words) {
        for line in piece.lines() {
            writeln!(text, "> {line}").expect("writing to a String cannot fail");
            quoted = true;
        }
    }
    if quoted {
        text.push('\n');
    }
    text
}

fn words(content: &ToolContent) -> Option<String> {
    match content {
        ToolContent::Content(Content::Text(text) | Content::Document { text, .. }) => Some(text.to_str().into_owned()),
        ToolContent::Diff { path, .. } => Some(format!("changed `{path}`")),
        ToolContent::Content(Content::Link { uri, name, .. }) => Some(format!("[{name}]({uri})")),
        ToolContent::Content(_) | ToolContent::Terminal(_) | ToolContent::Other { .. } => None,
    }
}
