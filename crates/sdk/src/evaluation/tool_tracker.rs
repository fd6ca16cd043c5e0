//! The calls of tools in one round: the agent's own by what it reports of them, this program's by what came of them.

use gembridge_core::model::{self as core, ClientCall, Content, ToolCall, ToolContent};
use gembridge_drivers::profile::Profile;
use serde_json::Value;

use crate::permission::kind_name;
use crate::reply::{ToolOrigin, ToolStatus, ToolUse};

pub(super) struct ToolTracker {
    /// How the agent calls the tools that it has from us.
    own: Vec<String>,
    /// The calls of those, which this program tells of itself.
    own_ids: Vec<String>,
    uses: Vec<ToolUse>,
    /// The call without an id that began last.
    unnamed: usize,
}

/// As much of what a tool gave back as is kept.
const OUTPUT: usize = 1_000;
/// The tool by which an agent delivers an answer in a form.
const ANSWER: &str = "structured_output";

impl ToolTracker {
    pub(super) fn new<'t>(profile: &Profile, tools: impl Iterator<Item = &'t str>) -> Self {
        let prefix = profile.mcp_tool_prefix();
        let title = profile.mcp.permission_title.as_deref().unwrap_or("{tool}");
        let names = tools.chain([ANSWER]).flat_map(|tool| {
            let titled = title.replace("{tool}", tool).replace("{mcp_server}", &profile.mcp.server_name);
            [tool.to_owned(), format!("{prefix}{tool}"), titled]
        });
        Self { own: names.collect(), own_ids: Vec::new(), uses: Vec::new(), unnamed: 0 }
    }

    /// What is known of the call now; `None` for a tool that the agent has from us, which is told of by its own call.
    pub(super) fn update(&mut self, call: &ToolCall) -> Option<ToolUse> {
        let id = self.id_of(call);
        let is_own =
            [&call.name, &call.title].into_iter().flatten().any(|name| self.own.iter().any(|own| **own == **name));
        if is_own && !self.own_ids.contains(&id) {
            self.own_ids.push(id.clone());
        }
        if self.own_ids.contains(&id) {
            return None;
        }
        let at = self.uses.iter().position(|known| known.id == id).unwrap_or_else(|| {
            self.uses.push(ToolUse {
                id,
                name: "acp:".to_owned(),
                origin: ToolOrigin::Agent,
                kind: "other",
                status: ToolStatus::Pending,
                input: None,
                output: None,
            });
            self.uses.len() - 1
        });
        let known = &mut self.uses[at];
        if let Some(title) = call.title.as_ref().or(call.name.as_ref()).filter(|_| known.name == "acp:") {
            known.name = format!("acp:{title}");
        }
        if call.kind.is_some() {
            known.kind = kind_name(call.kind);
        }
        if let Some(status) = call.status {
            known.status = status_of(status);
        }
        if let Some(input) = &call.input {
            known.input = Some(String::from_utf8_lossy(&input.0).into_owned());
        }
        if let Some(output) = output(call).filter(|output| !output.is_empty()) {
            known.output = Some(output.chars().take(OUTPUT).collect());
        }
        Some(known.clone())
    }

    /// A function of this program is called.
    pub(super) fn called(&mut self, call: &ClientCall) -> ToolUse {
        let begun = ToolUse {
            id: call.id.to_string(),
            name: call.tool.to_string(),
            origin: ToolOrigin::Program,
            kind: "other",
            status: ToolStatus::Running,
            input: Some(String::from_utf8_lossy(&call.arguments.0).into_owned()),
            output: None,
        };
        self.uses.push(begun.clone());
        begun
    }

    /// A function of this program has come to its end.
    pub(super) fn returned(&mut self, call: &ClientCall, result: &Result<String, String>) -> Option<ToolUse> {
        let id = call.id.to_string();
        let known = self.uses.iter_mut().find(|known| known.id == id)?;
        let (status, output) = match result {
            Ok(output) => (ToolStatus::Completed, output),
            Err(message) => (ToolStatus::Failed, message),
        };
        known.status = status;
        known.output = Some(output.clone());
        Some(known.clone())
    }

    pub(super) fn into_uses(self) -> Vec<ToolUse> {
        self.uses
    }

    /// Some agents name no calls: what begins one is told by its title or kind, and the rest follows the last that began.
    fn id_of(&mut self, call: &ToolCall) -> String {
        if !call.id.as_str().is_empty() {
            return call.id.to_string();
        }
        if call.title.is_some() || call.kind.is_some() || self.unnamed == 0 {
            self.unnamed += 1;
        }
        format!("_tc_{}", self.unnamed)
    }
}

fn status_of(status: core::ToolStatus) -> ToolStatus {
    match status {
        core::ToolStatus::Pending => ToolStatus::Pending,
        core::ToolStatus::InProgress => ToolStatus::Running,
        core::ToolStatus::Completed => ToolStatus::Completed,
        core::ToolStatus::Failed => ToolStatus::Failed,
    }
}

/// What the call gave back, in words.
fn output(call: &ToolCall) -> Option<String> {
    if let Some(raw) = &call.output {
        return match serde_json::from_slice(&raw.0) {
            Ok(Value::Null) => None,
            Ok(Value::String(text)) => Some(text),
            _ => Some(String::from_utf8_lossy(&raw.0).into_owned()),
        };
    }
    let texts = call.content.as_ref()?.iter().filter_map(|content| match content {
        ToolContent::Content(Content::Text(text)) => Some(text.to_str()),
        _ => None,
    });
    Some(texts.collect::<Vec<_>>().join("\n"))
}
