//! One message of a conversation, with its speaker. Texts may be slices of the request that brought them.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Content, Text};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    System,
    User,
    Assistant,
    /// What a tool of the client gave back.
    Tool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    Content(Content),
    /// The speaker called a tool of the client.
    Call {
        call: CallName,
        arguments: Text,
    },
    /// What follows came of this call.
    ResultOf(CallName),
}

/// A call as the agent reads of it: by the tool's name, and by its number where several were made at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallName {
    pub tool: Arc<str>,
    /// From 1, among the calls of its message. `None`: it was the only one.
    pub number: Option<usize>,
}

impl fmt::Display for CallName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "{} (call {number})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

impl Message {
    pub fn text(role: Role, text: impl Into<Text>) -> Self {
        Self { role, parts: vec![Part::text(text)] }
    }

    /// About the bytes that it takes in a prompt.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Part::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same with bytes of its own: a prompt that is kept must not keep the whole request in memory.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self { role: self.role, parts: self.parts.iter().map(Part::detached).collect() }
    }

    /// What it says that is no call.
    pub fn content(&self) -> impl Iterator<Item = &Content> {
        self.parts.iter().filter_map(|part| match part {
            Part::Content(content) => Some(content),
            Part::Call { .. } | Part::ResultOf(_) => None,
        })
    }
}

impl Part {
    pub fn text(text: impl Into<Text>) -> Self {
        Self::Content(Content::Text(text.into()))
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Content(content) => content.len(),
            Self::Call { call, arguments } => call.tool.len() + arguments.len(),
            Self::ResultOf(call) => call.tool.len(),
        }
    }

    fn detached(&self) -> Self {
        match self {
            Self::Content(content) => Self::Content(content.detached()),
            Self::Call { call, arguments } => Self::Call { call: call.clone(), arguments: arguments.detached() },
            Self::ResultOf(call) => Self::ResultOf(call.clone()),
        }
    }
}
