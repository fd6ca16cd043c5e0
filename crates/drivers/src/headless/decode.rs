//! What a line means, for both dialects. Lines of a kind that is not known, and what is no JSON, are passed over.

use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::driver::Update;
use gembridge_core::model::{
    Content, Dialect, Event, Frame, Opaque, Stop, Text, ToolCall, ToolCallId, ToolContent, ToolKind, ToolStatus, Usage,
};
use serde_json::Value;

use super::wire::{ClaudeLine, ClaudeUsage, GeminiLine, GeminiStats, Kind, Told, is_object};
use crate::profile::StreamFormat;

/// The `result` line: how the program itself says that the turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Finished(Stop),
    /// In the program's own words.
    Failed(String),
}

/// Reads the lines of one turn.
pub(super) struct Decoder {
    format: StreamFormat,
    /// Claude Code sends pieces, and then the same as a whole.
    has_pieces: bool,
    /// The last thing that the program called an error beside its result.
    complaint: Option<String>,
    pub session: Option<String>,
    pub verdict: Option<Verdict>,
    pub usage: Option<Usage>,
}

impl Decoder {
    pub fn new(format: StreamFormat) -> Self {
        Self { format, has_pieces: false, complaint: None, session: None, verdict: None, usage: None }
    }

    /// What happened, as one line tells it.
    pub fn line(&mut self, line: &Bytes) -> Vec<Update> {
        if !is_object(line) {
            return Vec::new();
        }
        if let Ok(Kind { kind, session_id: Some(session) }) = serde_json::from_slice::<Kind>(line)
            && !kind.is_empty()
        {
            self.session = Some(session);
        }
        let events = match self.format {
            StreamFormat::Gemini => serde_json::from_slice(line).map(|line| self.gemini(line)),
            StreamFormat::Claude => serde_json::from_slice(line).map(|line| self.claude(line)),
        };
        let frame = Frame { dialect: Dialect::Headless, bytes: line.clone() };
        let events = events.unwrap_or_default();
        events.into_iter().map(|event| Update { event, frame: Some(frame.clone()) }).collect()
    }

    fn gemini(&mut self, line: GeminiLine) -> Vec<Event> {
        match line {
            // `auto`, `auto-…`: a choice that is made later, and no model.
            GeminiLine::Init { model } => model
                .filter(|model| !model.starts_with("auto"))
                .map(|model| Event::Model(model.into()))
                .into_iter()
                .collect(),
            GeminiLine::Message { role, content } if role == "assistant" => text(content),
            GeminiLine::ToolUse { tool_name, tool_id, parameters } => vec![called(&tool_id, &tool_name, &parameters)],
            GeminiLine::ToolResult { tool_id, status, output, error } => {
                let has_failed = status != "success";
                let said = error.map(|error| error.message).filter(|said| !said.is_empty()).or(output);
                vec![returned(&tool_id, said.unwrap_or_default(), has_failed)]
            }
            GeminiLine::Error { message } => {
                self.complaint = Some(message);
                vec![Event::Other { kind: "error".into() }]
            }
            GeminiLine::Result { status, error, stats } => {
                self.usage = stats.map(|stats| of_gemini(&stats));
                self.verdict = Some(self.gemini_verdict(&status, error));
                Vec::new()
            }
            // What the user said comes back as the first message.
            GeminiLine::Message { .. } | GeminiLine::Other => Vec::new(),
        }
    }

    fn gemini_verdict(&mut self, status: &str, error: Option<Told>) -> Verdict {
        match error {
            Some(error) if error.kind.as_deref() == Some("FatalTurnLimitedError") => {
                Verdict::Finished(Stop::MaxTurnRequests)
            }
            Some(error) => Verdict::Failed(error.message),
            None if status == "success" => Verdict::Finished(Stop::EndTurn),
            None => {
                Verdict::Failed(self.complaint.take().unwrap_or_else(|| "the turn failed without a reason".to_owned()))
            }
        }
    }

    fn claude(&mut self, line: ClaudeLine) -> Vec<Event> {
        match line {
            ClaudeLine::System { subtype, model: Some(model) } if subtype.as_deref() == Some("init") => {
                vec![Event::Model(model.into())]
            }
            ClaudeLine::StreamEvent { event, parent_tool_use_id: None } => {
                let Some(delta) = event.delta else { return Vec::new() };
                match (delta.kind.as_deref(), delta.text, delta.thinking) {
                    (Some("text_delta"), Some(said), _) => {
                        self.has_pieces = true;
                        text(said)
                    }
                    (Some("thinking_delta"), _, Some(thought)) => {
                        self.has_pieces = true;
                        vec![Event::Thought(Text::plain(thought))]
                    }
                    _ => Vec::new(),
                }
            }
            // What a subagent says is told by the call that started it.
            ClaudeLine::Assistant { message, parent_tool_use_id: None }
            | ClaudeLine::User { message, parent_tool_use_id: None } => {
                let blocks = message.content.as_array().map(Vec::as_slice).unwrap_or_default();
                blocks.iter().flat_map(|block| self.claude_block(block)).collect()
            }
            ClaudeLine::Result { subtype, is_error, result, errors, stop_reason, usage } => {
                self.usage = usage.map(|usage| of_claude(&usage));
                self.verdict =
                    Some(claude_verdict(subtype.as_deref(), is_error, result, &errors, stop_reason.as_deref()));
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn claude_block(&self, block: &Value) -> Vec<Event> {
        let field = |name: &str| block[name].as_str().unwrap_or_default();
        match field("type") {
            "text" if !self.has_pieces => text(field("text").to_owned()),
            "thinking" if !self.has_pieces => vec![Event::Thought(Text::plain(field("thinking")))],
            "tool_use" => vec![called(field("id"), field("name"), &block["input"])],
            "tool_result" => {
                let said = match &block["content"] {
                    Value::String(text) => text.clone(),
                    Value::Array(parts) => {
                        parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
                    }
                    _ => String::new(),
                };
                vec![returned(field("tool_use_id"), said, block["is_error"].as_bool().unwrap_or(false))]
            }
            _ => Vec::new(),
        }
    }
}

fn claude_verdict(
    subtype: Option<&str>,
    is_error: bool,
    result: Option<String>,
    errors: &[Value],
    stop_reason: Option<&str>,
) -> Verdict {
    if subtype == Some("error_max_turns") {
        return Verdict::Finished(Stop::MaxTurnRequests);
    }
    if is_error || subtype.is_some_and(|subtype| subtype.starts_with("error")) {
        let told = errors.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; ");
        let said = result.filter(|said| !said.is_empty()).unwrap_or(told);
        return Verdict::Failed(if said.is_empty() {
            subtype.unwrap_or("it failed without a reason").to_owned()
        } else {
            said
        });
    }
    Verdict::Finished(match stop_reason {
        None | Some("end_turn" | "stop_sequence") => Stop::EndTurn,
        Some("max_tokens") => Stop::MaxTokens,
        Some("refusal") => Stop::Refusal,
        Some(other) => Stop::Other(other.into()),
    })
}

fn text(said: String) -> Vec<Event> {
    if said.is_empty() { Vec::new() } else { vec![Event::Text(Text::plain(said))] }
}

fn called(id: &str, name: &str, input: &Value) -> Event {
    let mut call = ToolCall::update(ToolCallId::new(id));
    call.name = Some(name.into());
    call.title = Some(tool_title(name, input));
    call.kind = Some(tool_kind(name));
    call.status = Some(ToolStatus::InProgress);
    call.input = Some(Opaque(Bytes::from(input.to_string())));
    Event::ToolCall(Box::new(call))
}

fn returned(id: &str, said: String, has_failed: bool) -> Event {
    let mut call = ToolCall::update(ToolCallId::new(id));
    call.status = Some(if has_failed { ToolStatus::Failed } else { ToolStatus::Completed });
    call.content = Some(vec![ToolContent::Content(Content::text(said))]);
    Event::ToolCall(Box::new(call))
}

/// The name and the argument that tells most.
pub(crate) fn tool_title(name: &str, input: &Value) -> Arc<str> {
    const TELLING: [&str; 7] = ["command", "file_path", "dir_path", "pattern", "query", "url", "description"];
    let told = TELLING.iter().find_map(|field| input[*field].as_str());
    let line = told.and_then(|told| told.lines().next()).unwrap_or_default();
    if line.is_empty() { name.into() } else { format!("{name}: {line}").into() }
}

/// By the names that the two programs give their tools.
pub(crate) fn tool_kind(name: &str) -> ToolKind {
    match name {
        "read_file" | "read_many_files" | "list_directory" | "Read" | "NotebookRead" => ToolKind::Read,
        "write_file" | "replace" | "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => ToolKind::Edit,
        "glob" | "grep_search" | "search_file_content" | "Glob" | "Grep" | "ToolSearch" => ToolKind::Search,
        "run_shell_command" | "Bash" => ToolKind::Execute,
        "web_fetch" | "google_web_search" | "WebFetch" | "WebSearch" => ToolKind::Fetch,
        "enter_plan_mode" | "exit_plan_mode" | "ExitPlanMode" => ToolKind::SwitchMode,
        _ => ToolKind::Other,
    }
}

fn of_gemini(stats: &GeminiStats) -> Usage {
    let (input, output, total) = (stats.input_tokens, stats.output_tokens, stats.total_tokens);
    // Thoughts are in the total only.
    let thought = match (input, output, total) {
        (Some(input), Some(output), Some(total)) => {
            total.checked_sub(input.saturating_add(output)).filter(|rest| *rest > 0)
        }
        _ => None,
    };
    Usage { input, output, thought, cached_read: stats.cached, total, ..Usage::default() }
}

fn of_claude(usage: &ClaudeUsage) -> Usage {
    Usage {
        input: usage.input_tokens,
        output: usage.output_tokens,
        cached_read: usage.cache_read_input_tokens,
        cached_write: usage.cache_creation_input_tokens,
        ..Usage::default()
    }
}
