//! Tool calls of the agent: announced, updated and finished by upserts that name only what changed.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Content, Text, ToolCallId};

/// Structured data in the dialect's own encoding. The core carries it and never looks inside.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Opaque(pub Bytes);

/// What is known of a tool call, or what changed in it: an absent field says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: ToolCallId,
    /// The tool's programmatic name, where the agent tells it.
    pub name: Option<Arc<str>>,
    pub title: Option<Arc<str>>,
    /// What the call is for, parsed out of the agent's title or content. Empty when there is none.
    pub description: Option<Arc<str>>,
    /// The folder the call works in, parsed likewise.
    pub working_dir: Option<Arc<str>>,
    pub kind: Option<ToolKind>,
    pub status: Option<ToolStatus>,
    pub content: Option<Vec<ToolContent>>,
    pub locations: Option<Vec<Location>>,
    pub input: Option<Opaque>,
    pub output: Option<Opaque>,
}

impl ToolCall {
    /// An update that changes nothing yet.
    pub fn update(id: ToolCallId) -> Self {
        Self {
            id,
            name: None,
            title: None,
            description: None,
            working_dir: None,
            kind: None,
            status: None,
            content: None,
            locations: None,
            input: None,
            output: None,
        }
    }

    /// Takes over every field that `newer` names.
    pub fn merge(&mut self, newer: &Self) {
        fn take<T: Clone>(old: &mut Option<T>, new: Option<&T>) {
            if let Some(new) = new {
                *old = Some(new.clone());
            }
        }
        take(&mut self.name, newer.name.as_ref());
        take(&mut self.title, newer.title.as_ref());
        take(&mut self.description, newer.description.as_ref());
        take(&mut self.working_dir, newer.working_dir.as_ref());
        take(&mut self.kind, newer.kind.as_ref());
        take(&mut self.status, newer.status.as_ref());
        take(&mut self.content, newer.content.as_ref());
        take(&mut self.locations, newer.locations.as_ref());
        take(&mut self.input, newer.input.as_ref());
        take(&mut self.output, newer.output.as_ref());
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ToolKind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ToolStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

impl ToolStatus {
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolContent {
    Content(Content),
    Diff { path: Arc<str>, old: Option<Text>, new: Text },
    Terminal(Arc<str>),
    Other { kind: Arc<str>, body: Opaque },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    pub path: Arc<str>,
    pub line: Option<u64>,
}
