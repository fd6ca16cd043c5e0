//! What happens while an agent works.

use crate::permission::PermissionRequest;
use crate::reply::{PlanEntry, ToolUse, Usage};

/// A step on the way to an answer. More kinds may come.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TurnEvent {
    /// The agent has the prompt.
    Started {
        session: String,
    },
    /// A piece of the answer. An answer in a given form comes in one piece, once it is known to have that form.
    Text(String),
    Thought(String),
    /// A call of a tool began, changed or ended: all that is known of it.
    Tool(ToolUse),
    /// The agent asks for a permission; [`Permissions`](crate::Permissions) answers.
    Permission(PermissionRequest),
    /// The permission that was asked for last and not answered yet is decided.
    PermissionDecided {
        allowed: bool,
    },
    Plan(Vec<PlanEntry>),
    /// Tokens of the turn so far.
    Usage(Usage),
    Mode(String),
    Model(String),
    /// The completion check lets the agent go on.
    Continued {
        round: usize,
        feedback: String,
    },
    /// Something went not as asked, and is no failure.
    Warning(String),
    /// An update that has no other place here, by its kind.
    Other(String),
}

/// An event with where it happened, for an observer of the whole adapter.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Observed<'a> {
    /// The adapter's name, such as `gemini_acp`.
    pub adapter: &'a str,
    pub session: &'a str,
    pub event: &'a TurnEvent,
}
