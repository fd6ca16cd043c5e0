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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gembridge_core::model::{Opaque, ToolCallId, ToolKind};

    use super::*;

    fn tracker() -> ToolTracker {
        let profiles = Profile::builtin().unwrap();
        let gemini = profiles.iter().find(|profile| profile.name == "gemini").unwrap();
        ToolTracker::new(gemini, ["add"].into_iter())
    }

    fn start(id: &str, title: &str) -> ToolCall {
        let kind = Some(ToolKind::Read);
        ToolCall { title: Some(title.into()), kind, ..progress(id, core::ToolStatus::Pending) }
    }

    fn progress(id: &str, status: core::ToolStatus) -> ToolCall {
        ToolCall { status: Some(status), ..ToolCall::update(ToolCallId::new(id)) }
    }

    fn with_output(call: ToolCall, json: &str) -> ToolCall {
        ToolCall { output: Some(Opaque(Bytes::copy_from_slice(json.as_bytes()))), ..call }
    }

    #[test]
    fn calls_without_an_id_get_one_and_progress_follows_the_last_that_began() {
        let mut tracker = tracker();
        tracker.update(&start("", "one"));
        tracker.update(&progress("", core::ToolStatus::Completed));
        tracker.update(&start("", "two"));
        tracker.update(&progress("", core::ToolStatus::Failed));
        let uses: Vec<_> = tracker.into_uses().into_iter().map(|call| (call.id, call.name, call.status)).collect();
        let expected = [("_tc_1", "acp:one", ToolStatus::Completed), ("_tc_2", "acp:two", ToolStatus::Failed)];
        assert_eq!(uses, expected.map(|(id, name, status)| (id.to_owned(), name.to_owned(), status)));
    }

    #[test]
    fn progress_without_a_start_makes_an_entry_and_the_first_name_stays() {
        let mut tracker = tracker();
        tracker.update(&progress("7", core::ToolStatus::InProgress));
        tracker.update(&start("7", "first"));
        let last = tracker.update(&ToolCall { status: Some(core::ToolStatus::Completed), ..start("7", "second") });
        let last = last.unwrap();
        assert_eq!((last.name.as_str(), last.status, last.succeeded()), ("acp:first", ToolStatus::Completed, true));
        assert_eq!(tracker.into_uses().len(), 1);
    }

    #[test]
    fn output_is_text_cut_to_a_thousand_characters_and_kept_when_nothing_follows() {
        let mut tracker = tracker();
        let long = format!("\"{}\"", "é".repeat(1_500));
        tracker.update(&with_output(start("1", "long"), &long));
        tracker.update(&with_output(progress("1", core::ToolStatus::Completed), "null"));
        tracker.update(&with_output(progress("1", core::ToolStatus::Completed), "\"\""));
        tracker.update(&with_output(start("2", "object"), r#"{"exit": 0}"#));
        let uses = tracker.into_uses();
        assert_eq!(uses[0].output.as_deref(), Some("é".repeat(1_000).as_str()));
        assert_eq!(uses[1].output.as_deref(), Some(r#"{"exit": 0}"#));
    }

    #[test]
    fn tools_that_the_agent_has_from_us_are_not_its_own() {
        let mut tracker = tracker();
        for title in ["add", "mcp_host-tools_add", "add (host-tools MCP Server)", "structured_output"] {
            assert_eq!(tracker.update(&start(title, title)), None);
            assert_eq!(
                tracker.update(&progress(title, core::ToolStatus::Completed)),
                None,
                "what follows is passed over"
            );
        }
        assert!(tracker.update(&start("x", "address")).is_some());
        assert_eq!(tracker.into_uses().len(), 1);
    }
}
