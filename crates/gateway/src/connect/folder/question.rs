//! The question whether the agent may work in the folder of a session, as a permission that the client is asked for.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Routed;

/// Where the question of one session has got to.
#[derive(Debug)]
pub(super) enum Question {
    /// It is asked with the next prompt: a client can show nothing before.
    Due { folder: PathBuf },
    /// It is asked, and prompts wait for what comes of it.
    Open {
        folder: PathBuf,
        /// The id of the request.
        request: String,
        /// The call of a tool that it is shown as.
        call: String,
        held: VecDeque<String>,
    },
}

/// What the person says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// In this folder, from now on.
    Trust,
    /// In this folder, in this session.
    Once,
    Without,
    /// Nobody decided: the client cannot ask, or the question was dismissed.
    Unanswered,
}

/// Before the ids of the relay's questions.
const ASKED: &str = "gembridge-connect:folder:";
const ONCE: &str = "work-in-folder-once";
const TRUST: &str = "trust-folder";
const WITHOUT: &str = "without-folder";
/// Prompts that wait for one answer.
const MOST_HELD: usize = 16;

/// Whether a line may be an answer to one of the relay's questions.
pub(super) fn may_be_answer(line: &str) -> bool {
    line.contains(ASKED)
}

pub(super) fn is_answer(message: &Value) -> bool {
    message.get("method").is_none() && message["id"].as_str().is_some_and(|id| id.starts_with(ASKED))
}

impl Decision {
    pub(super) fn read(answer: &Value) -> Self {
        let outcome = &answer["result"]["outcome"];
        match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
            (Some("selected"), Some(TRUST)) => Self::Trust,
            (Some("selected"), Some(ONCE)) => Self::Once,
            (Some("selected"), Some(WITHOUT)) => Self::Without,
            _ => Self::Unanswered,
        }
    }
}

impl Question {
    pub(super) fn due(folder: PathBuf) -> Self {
        Self::Due { folder }
    }

    /// Keeps a prompt until the question is answered, and asks it if it was not asked yet.
    pub(super) fn hold(&mut self, session: &str, prompt: String, number: u64) -> Routed {
        match self {
            Self::Due { folder } => {
                let folder = std::mem::take(folder);
                let (request, call) = (format!("{ASKED}{number}"), format!("gembridge-folder-{number}"));
                let to_client = asked(session, &folder, &request, &call);
                *self = Self::Open { folder, request, call, held: VecDeque::from([prompt]) };
                Routed { to_gateway: Vec::new(), to_client }
            }
            Self::Open { held, .. } if held.len() < MOST_HELD => {
                held.push_back(prompt);
                Routed::default()
            }
            Self::Open { .. } => {
                let message = "answer first whether the agent may work in the folder";
                let error = json!({"code": -32_603, "message": message});
                Routed { to_gateway: Vec::new(), to_client: answer(&prompt, "error", &error).into_iter().collect() }
            }
        }
    }

    /// The person took the prompt back: it ends as cancelled, and the next one asks again.
    pub(super) fn take_back(&mut self, session: &str) -> Vec<String> {
        let Self::Open { folder, call, held, .. } = self else { return Vec::new() };
        let cancelled = json!({"stopReason": "cancelled"});
        let mut told = vec![settled(session, call, false)];
        told.extend(held.iter().filter_map(|prompt| answer(prompt, "result", &cancelled)));
        *self = Self::Due { folder: std::mem::take(folder) };
        told
    }

    pub(super) fn is_answered_by(&self, message: &Value) -> bool {
        matches!(self, Self::Open { request, .. } if message["id"] == request.as_str())
    }
}

/// The messages that put the question to the person. What gives the agent least comes first, for clients that answer by
/// themselves.
fn asked(session: &str, folder: &Path, request: &str, call: &str) -> Vec<String> {
    let shown = folder.display();
    let title = format!("Let the agent work in `{shown}`?");
    let why = format!(
        "gembridge does not know `{shown}` yet. In a trusted folder the agent reads and changes files, runs commands and \
         obeys the settings that lie there; it asks before it uses its tools. Without it you chat with it as a model."
    );
    let content = json!([{"type": "content", "content": {"type": "text", "text": why}}]);
    let tool = json!({"toolCallId": call, "title": title, "kind": "other", "status": "pending", "content": content});
    let mut announced = tool.clone();
    announced["sessionUpdate"] = json!("tool_call");
    let options = json!([
        {"optionId": ONCE, "name": "This time only", "kind": "allow_once"},
        {"optionId": TRUST, "name": "Trust this folder", "kind": "allow_always"},
        {"optionId": WITHOUT, "name": "Chat without it", "kind": "reject_once"},
    ]);
    let params = json!({"sessionId": session, "toolCall": tool, "options": options});
    let question =
        json!({"jsonrpc": "2.0", "id": request, "method": "session/request_permission", "params": params}).to_string();
    vec![update(session, &announced), question]
}

/// What the call that showed the question came to.
pub(super) fn settled(session: &str, call: &str, works: bool) -> String {
    let status = if works { "completed" } else { "failed" };
    update(session, &json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": status}))
}

pub(super) fn update(session: &str, update: &Value) -> String {
    let params = json!({"sessionId": session, "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
}

fn answer(request: &str, member: &str, body: &Value) -> Option<String> {
    let request: Value = serde_json::from_str(request).ok()?;
    let mut answer = json!({"jsonrpc": "2.0", "id": request["id"]});
    answer[member] = body.clone();
    Some(answer.to_string())
}
