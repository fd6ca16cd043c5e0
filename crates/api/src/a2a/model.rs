//! Tasks, messages and their parts, in no version of the protocol. Both codecs read and write these.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use gembridge_core::model::{SessionId, Text, Timestamp};
use serde_json::Value;

/// A task of a session. The id names its session, so that the bare id finds its way without an index, also after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskId {
    session: SessionId,
    number: u32,
}

/// Not an id that was given here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignTaskId;

const SESSION_LENGTH: usize = 36;
const NUMBER_LENGTH: usize = 8;

impl TaskId {
    pub fn new(session: SessionId, number: u32) -> Self {
        Self { session, number }
    }

    pub fn session(self) -> SessionId {
        self.session
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:08x}", self.session, self.number)
    }
}

impl FromStr for TaskId {
    type Err = ForeignTaskId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (session, rest) = text.split_at_checked(SESSION_LENGTH).ok_or(ForeignTaskId)?;
        let session = SessionId::of_our_form(session).ok_or(ForeignTaskId)?;
        let digits = rest.strip_prefix('-').filter(|digits| digits.len() == NUMBER_LENGTH).ok_or(ForeignTaskId)?;
        let id = Self { session, number: u32::from_str_radix(digits, 16).map_err(|_| ForeignTaskId)? };
        // One id has one spelling.
        if id.to_string() == text { Ok(id) } else { Err(ForeignTaskId) }
    }
}

/// A task and the conversation that it is part of, as clients name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskName {
    pub id: TaskId,
    pub context: Arc<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Submitted,
    Working,
    /// The agent waits for its client: for the next message, a confirmation, or the result of a tool.
    InputRequired,
    Completed,
    Failed,
    Canceled,
    Rejected,
}

impl State {
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected => true,
            Self::Submitted | Self::Working | Self::InputRequired => false,
        }
    }

    /// Whether nothing more comes until the client says something.
    pub fn is_at_rest(self) -> bool {
        self.is_terminal() || self == Self::InputRequired
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub state: State,
    pub message: Option<Message>,
    pub at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    User,
    Agent,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub id: Arc<str>,
    pub author: Author,
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Text(Text),
    /// The bytes of a file, in Base64.
    Raw {
        name: Option<Arc<str>>,
        mime: Option<Arc<str>>,
        data: Text,
    },
    Url {
        name: Option<Arc<str>>,
        mime: Option<Arc<str>>,
        url: Arc<str>,
    },
    Data(Value),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    pub id: Arc<str>,
    pub name: Option<Arc<str>>,
    pub parts: Vec<Part>,
}

/// A task as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub name: Arc<TaskName>,
    pub status: Status,
    pub history: Vec<Message>,
    pub artifacts: Vec<Artifact>,
    pub metadata: Value,
    pub reply: Answer,
}

impl Task {
    /// About the bytes of what it says.
    pub fn weight(&self) -> usize {
        let said = self.history.iter().chain(&self.status.message).map(|message| &message.parts);
        let made = self.artifacts.iter().map(|artifact| &artifact.parts);
        said.chain(made).flatten().map(Part::weight).sum()
    }
}

impl Part {
    /// About the bytes of its text.
    pub fn weight(&self) -> usize {
        match self {
            Self::Text(text) | Self::Raw { data: text, .. } => text.len(),
            Self::Url { url, .. } => url.len(),
            Self::Data(data) => data.to_string().len(),
        }
    }
}

/// What the agent makes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Task,
    /// It answered, and there is nothing to go on with.
    Message,
}

/// One step of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    Status { status: Status, kind: Kind, metadata: Vec<(&'static str, Value)>, is_last: bool },
    Artifact { artifact: Artifact, continuation: Continuation },
}

/// How a piece of an artifact relates to the pieces before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuation {
    First,
    Appended,
}

/// What a status update is about, in the words of clients that know coding agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    StateChange,
    Text,
    Thought,
    ToolUpdate,
    /// A tool waits for a decision, or for its result.
    ToolConfirmation,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StateChange => "state-change",
            Self::Text => "text-content",
            Self::Thought => "thought",
            Self::ToolUpdate => "tool-call-update",
            Self::ToolConfirmation => "tool-call-confirmation",
        }
    }
}

/// RFC 3339, as both versions write times.
pub fn iso(at: Timestamp) -> String {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    format!("{:.3}", jiff::Timestamp::from_millisecond(millis).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_id_finds_its_session_and_has_one_spelling() {
        let id = TaskId::new(SessionId::new(), 0xbeef);
        let text = id.to_string();
        assert_eq!(text.parse(), Ok(id));
        for foreign in
            ["", "task-1", &text.to_uppercase(), &text[1..], &format!("{text}0"), &text.replace("-0000", "-+000")]
        {
            assert_eq!(foreign.parse::<TaskId>(), Err(ForeignTaskId), "{foreign}");
        }
    }

    #[test]
    fn times_have_milliseconds_and_a_zone() {
        assert_eq!(iso(Timestamp(1_700_000_000_000)), "2023-11-14T22:13:20.000Z");
    }
}
