//! What events fold into: the messages, thoughts, tool calls and plans that a reader thinks in.

use serde::{Deserialize, Serialize};

use super::{Content, PlanEntry, ToolCall};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Item {
    /// A stretch of answer text between other things.
    Message(String),
    Thought(String),
    Content(Content),
    Tool(ToolItem),
    Plan(Vec<PlanEntry>),
}

/// A tool call with every update merged. One that was refused and never heard of again is closed as failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolItem {
    pub call: ToolCall,
    /// Set when a person or a policy said no.
    pub refused: bool,
}
