//! Tool calls as clients of coding agents read them.

use std::collections::HashMap;

use gembridge_core::model::{
    Ask, AskBody, ClientCall, Content, Opaque, OptionKind, ToolCall, ToolCallId, ToolContent, ToolStatus,
};
use serde_json::{Value, json};

use crate::a2a::model::{Artifact, Part};

/// The calls of the turn that runs, as they stand.
#[derive(Default)]
pub struct Tools(HashMap<ToolCallId, ToolCall>);

/// Calls that are remembered; of one more only what an update says is known.
const MOST: usize = 256;
/// Bytes of a tool's output that are shown.
const MOST_OUTPUT: usize = 256 << 10;

impl Tools {
    /// An update of a call: the call as it stands, and its output once it is whole.
    pub fn update(&mut self, update: &ToolCall) -> (Value, Option<Artifact>) {
        let is_known = self.0.contains_key(&update.id);
        let call = match self.0.get_mut(&update.id) {
            Some(known) => {
                known.merge(update);
                known.clone()
            }
            None => update.clone(),
        };
        if !is_known && self.0.len() < MOST {
            self.0.insert(update.id.clone(), call.clone());
        }
        let output = call.status.is_some_and(ToolStatus::is_final).then(|| output(&call)).flatten();
        (described(&call, status(call.status)), output)
    }

    /// A question for permission. `None` for questions of another kind.
    pub fn asked(&self, ask: &Ask) -> Option<Value> {
        let AskBody::Permission { tool, options, .. } = &ask.body else { return None };
        let mut call = self.0.get(&tool.id).cloned().unwrap_or_else(|| ToolCall::update(tool.id.clone()));
        call.merge(tool);
        let mut data = described(&call, "awaiting_approval");
        let outcomes: Vec<&str> = options.iter().filter_map(|option| outcome(option.kind)).collect();
        data["confirmationDetails"] = json!({
            "type": "info",
            "title": call.title.as_deref().unwrap_or_default(),
            "outcomes": outcomes,
        });
        Some(data)
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// A call of a tool that the client runs.
pub fn client_call(call: &ClientCall) -> Value {
    json!({
        "request": { "callId": call.id.to_string(), "name": call.tool, "args": value(&call.arguments) },
        "status": "awaiting_approval",
        "tool": { "name": call.tool, "runs": "client" },
    })
}

/// What a client answers in order to choose an option of this kind.
fn outcome(kind: OptionKind) -> Option<&'static str> {
    match kind {
        OptionKind::AllowOnce => Some("proceed_once"),
        OptionKind::AllowAlways => Some("proceed_always"),
        OptionKind::RejectOnce | OptionKind::RejectAlways => Some("cancel"),
        OptionKind::Unknown => None,
    }
}

fn described(call: &ToolCall, status: &str) -> Value {
    let name = call.name.as_deref().or(call.title.as_deref()).unwrap_or("tool");
    json!({
        "request": {
            "callId": call.id.as_str(),
            "name": name,
            "args": call.input.as_ref().map_or_else(|| json!({}), value),
        },
        "status": status,
        "tool": {
            "name": name,
            "displayName": call.title.as_deref().unwrap_or(name),
            "description": call.description.as_deref().unwrap_or_default(),
            "runs": "agent",
        },
    })
}

fn status(status: Option<ToolStatus>) -> &'static str {
    match status {
        None | Some(ToolStatus::Pending) => "scheduled",
        Some(ToolStatus::InProgress) => "executing",
        Some(ToolStatus::Completed) => "success",
        Some(ToolStatus::Failed) => "error",
    }
}

fn output(call: &ToolCall) -> Option<Artifact> {
    let texts = call.content.iter().flatten().filter_map(|content| match content {
        ToolContent::Content(Content::Text(text)) if text.len() <= MOST_OUTPUT => Some(Part::Text(text.clone())),
        _ => None,
    });
    let parts: Vec<Part> = texts.collect();
    let id = format!("tool-{}-output", call.id).into();
    let name = call.name.clone().or_else(|| call.title.clone());
    (!parts.is_empty()).then_some(Artifact { id, name, parts })
}

fn value(opaque: &Opaque) -> Value {
    serde_json::from_slice(&opaque.0).unwrap_or_default()
}
