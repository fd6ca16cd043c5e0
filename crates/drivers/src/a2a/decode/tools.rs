//! The tool calls of a turn: what is known of each, and which wait for a decision.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::model::{
    Answer, Ask, AskBody, AskId, AskOption, Content, Event, Opaque, OptionKind, Subject, ToolCall, ToolCallId,
    ToolContent, ToolStatus,
};
use serde_json::Value;

use super::words;
use crate::a2a::wire::{Artifact, ToolData, ToolResponse};
use crate::headless::{tool_kind, tool_title};

/// Calls of one turn that are remembered. Of one more, each update is told as if it were the first.
const MOST: usize = 1_024;
/// Bytes of one call's output that are told.
const MOST_OUTPUT: usize = 256 << 10;

#[derive(Default)]
pub(super) struct Tools {
    /// The status of each call that was told last.
    known: HashMap<String, Known>,
    questions: Vec<Question>,
    asked: u64,
}

#[derive(Default)]
struct Known {
    status: String,
    output: String,
}

/// A call that waits for a decision.
struct Question {
    ask: AskId,
    call: String,
    outcome: Option<Arc<str>>,
}

impl Tools {
    /// What a data part tells, if it is about a tool call.
    pub fn told(&mut self, data: Value) -> Vec<Event> {
        let Ok(told) = serde_json::from_value::<ToolData>(data) else { return Vec::new() };
        let call = &told.request.call_id;
        let before = self.known.get(call).map(|known| known.status.as_str());
        if before == Some(told.status.as_str()) {
            return Vec::new();
        }
        let is_new = before.is_none();
        if !is_new || self.known.len() < MOST {
            self.known.entry(call.clone()).or_default().status.clone_from(&told.status);
        }
        let mut update = ToolCall::update(ToolCallId::new(call.as_str()));
        update.status = Some(status(&told.status));
        if is_new {
            describe(&mut update, &told);
        }
        if let Some(output) = told.response.as_ref().and_then(output) {
            update.content = Some(vec![ToolContent::Content(Content::text(output))]);
        }
        if told.status != "awaiting_approval" {
            return vec![Event::ToolCall(Box::new(update))];
        }
        describe(&mut update, &told);
        vec![self.ask(update, &told)]
    }

    /// What a tool has written so far; `None` for an artifact that is not a tool's.
    pub fn output(&mut self, artifact: &Artifact, append: bool) -> Option<Event> {
        let call = artifact.artifact_id.strip_prefix("tool-")?.strip_suffix("-output")?;
        let known = self.known.get_mut(call)?;
        if !append {
            known.output.clear();
        }
        let said = words(&artifact.parts);
        let room = MOST_OUTPUT.saturating_sub(known.output.len());
        known.output.push_str(&said[..said.floor_char_boundary(room)]);
        let mut update = ToolCall::update(ToolCallId::new(call));
        update.content = Some(vec![ToolContent::Content(Content::text(known.output.clone()))]);
        Some(Event::ToolCall(Box::new(update)))
    }

    pub fn has_questions(&self) -> bool {
        !self.questions.is_empty()
    }

    pub fn answered(&mut self, ask: AskId, answer: &Answer) {
        let outcome = match answer {
            Answer::Option(id) => Arc::clone(id),
            Answer::Cancelled | Answer::Result(_) => CANCEL.into(),
        };
        if let Some(question) = self.questions.iter_mut().find(|question| question.ask == ask) {
            question.outcome = Some(outcome);
        }
    }

    /// The outcome for each call, once there is one for all of them.
    pub fn decisions(&mut self) -> Option<Vec<(String, Arc<str>)>> {
        if self.questions.iter().any(|question| question.outcome.is_none()) {
            return None;
        }
        let decided = self.questions.drain(..).filter_map(|question| Some((question.call, question.outcome?)));
        Some(decided.collect())
    }

    fn ask(&mut self, tool: ToolCall, told: &ToolData) -> Event {
        self.asked += 1;
        let ask = AskId(self.asked);
        self.questions.push(Question { ask, call: told.request.call_id.clone(), outcome: None });
        let offered = told.confirmation_details.as_ref().and_then(|details| details.outcomes.as_ref());
        let is_offered = |outcome: &str| offered.is_none_or(|offered| offered.iter().any(|known| known == outcome));
        let options = OUTCOMES.into_iter().filter(|(outcome, ..)| is_offered(outcome));
        let options = options.map(|(id, name, kind)| AskOption { id: id.into(), name: name.into(), kind }).collect();
        // A tool of the client's is given to the agent as one of a trusted server, of which it does not ask.
        let body = AskBody::Permission { tool: Box::new(tool), options, subject: Subject::AgentTool };
        Event::Asked(Box::new(Ask { id: ask, body }))
    }
}

const CANCEL: &str = "cancel";
const OUTCOMES: [(&str, &str, OptionKind); 3] = [
    ("proceed_once", "Allow once", OptionKind::AllowOnce),
    ("proceed_always", "Always allow", OptionKind::AllowAlways),
    (CANCEL, "Reject", OptionKind::RejectOnce),
];

fn describe(update: &mut ToolCall, told: &ToolData) {
    let (name, args) = (&told.request.name, &told.request.args);
    update.name = Some(name.as_str().into());
    let shown = told.confirmation_details.as_ref().and_then(|details| details.title.as_deref());
    let shown = shown.or(told.tool.display_name.as_deref()).filter(|shown| !shown.is_empty());
    let title = tool_title(name, args);
    // The name with its arguments tells more than a name for people, where there are arguments that tell something.
    update.title = Some(if *title == **name { shown.map_or(title, Into::into) } else { title });
    update.kind = Some(tool_kind(name));
    update.input = Some(Opaque(Bytes::from(args.to_string())));
}

fn status(word: &str) -> ToolStatus {
    match word {
        "success" => ToolStatus::Completed,
        "error" | "cancelled" => ToolStatus::Failed,
        "executing" => ToolStatus::InProgress,
        _ => ToolStatus::Pending,
    }
}

/// What the tool gave back: as it is shown to people, else as the model gets it.
fn output(response: &ToolResponse) -> Option<String> {
    let shown = response.result_display.as_str().map(str::to_owned);
    let model = || {
        let parts = response.response_parts.as_array()?;
        let outputs = parts.iter().filter_map(|part| part["functionResponse"]["response"]["output"].as_str());
        Some(outputs.collect::<Vec<_>>().join("\n"))
    };
    let mut output = shown.or_else(model).filter(|output| !output.is_empty())?;
    output.truncate(output.floor_char_boundary(MOST_OUTPUT));
    Some(output)
}
