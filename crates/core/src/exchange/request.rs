//! What a client that keeps its own history asks for, in no dialect's words.

use std::sync::Arc;

use super::catalog::Resolved;
use super::conversations::Owner;
use crate::model::{ClientTool, Content, Message, Principal, ToolReturn};
use crate::session::{SessionHandle, Viewer};
use crate::tool_host::FormatSpec;

pub struct Request {
    pub principal: Principal,
    pub viewer: Viewer,
    /// Who answers.
    pub resolved: Resolved,
    /// The session that the client named.
    pub session: Option<NamedSession>,
    /// Everything that was said, the newest last.
    pub history: Arc<[Message]>,
    /// Results of calls, where the newest messages bring some.
    pub follow_up: Option<FollowUp>,
    pub tools: Tools,
    /// The form that the answer shall have. `None`: text.
    pub output: Option<FormatSpec>,
    /// Texts that end an answer.
    pub stop: Vec<String>,
    pub limit: Option<TokenLimit>,
    /// How many answers.
    pub answers: usize,
}

/// A session that the client named.
pub struct NamedSession {
    pub handle: SessionHandle,
    pub owner: Owner,
}

/// What a request says about tools that the client runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    /// Those that the agent may call.
    pub offered: Vec<OfferedTool>,
    pub choice: ToolChoice,
    pub call_ids: CallIds,
    pub at_once: AtOnce,
}

impl Tools {
    pub fn none() -> Self {
        Self { offered: Vec::new(), choice: ToolChoice::Auto, call_ids: CallIds::Told, at_once: AtOnce::Many }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedTool {
    pub tool: ClientTool,
    /// Arguments that do not fit the schema are no use to the client.
    pub strict: bool,
}

/// Whether the agent calls one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    Auto,
    Never,
    Required,
}

/// Whether the client is told the ids of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallIds {
    Told,
    /// It is not, or forgets them, and comes back with its history alone.
    Missing,
}

/// How many calls one answer may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtOnce {
    One,
    Many,
}

/// About how many tokens an answer may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenLimit {
    pub tokens: u64,
    pub counts: Counts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    Text,
    TextAndThoughts,
}

/// What came after the last answer, which called tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowUp {
    pub results: Vec<CallResult>,
    /// Calls of that answer without a result.
    pub unanswered: Vec<CallRef>,
    /// What else was said since, each with its speaker's name.
    pub more: Vec<Content>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult {
    pub call: CallRef,
    pub result: ToolReturn,
}

/// A call, in the client's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallRef {
    Id(String),
    /// Clients that are told no ids name the tool alone.
    Tool(String),
}
