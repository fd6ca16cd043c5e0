//! A tool call between its first mention and its result.

use gembridge_core::log::LogEntry;
use gembridge_core::model::ToolCall;
use serde_json::Value;

#[derive(Debug)]
pub(super) struct Call {
    pub tool: ToolCall,
    /// The id of the message that it begins, if it begins one.
    pub id: String,
    pub timestamp: u64,
    pub refused: bool,
    /// What the agent sent about it that no message has yet.
    pub originals: Vec<Value>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its arguments may still come.
    Announced,
    Shown,
    Closed,
}

impl Call {
    pub fn new(entry: &LogEntry, call: &ToolCall) -> Self {
        Self {
            tool: ToolCall::update(call.id.clone()),
            id: format!("msg_{}", entry.seq.0),
            timestamp: entry.at.0,
            refused: false,
            originals: Vec::new(),
            stage: Stage::Announced,
        }
    }

    /// Whether it is for the caller to show it: true once.
    pub fn begin_showing(&mut self) -> bool {
        let is_new = self.stage == Stage::Announced;
        if is_new {
            self.stage = Stage::Shown;
        }
        is_new
    }

    pub fn close(&mut self) {
        self.stage = Stage::Closed;
    }

    pub fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }
}
