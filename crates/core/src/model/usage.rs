//! Tokens of a turn, from whichever place the agent reports them in.

use serde::{Deserialize, Serialize};

/// What a turn used. A field that the agent did not report is absent, never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub thought: Option<u64>,
    pub cached_read: Option<u64>,
    pub cached_write: Option<u64>,
    pub total: Option<u64>,
    #[serde(default, skip_serializing_if = "UsageScope::is_turn")]
    pub scope: UsageScope,
}

/// What a report counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum UsageScope {
    /// All calls of the model in the turn, each with its whole context.
    #[default]
    Turn,
    /// The last call of the model.
    Call,
}

impl UsageScope {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
    fn is_turn(&self) -> bool {
        *self == Self::Turn
    }
}

impl Usage {
    pub fn is_empty(&self) -> bool {
        *self == Self { scope: self.scope, ..Self::default() }
    }

    /// Takes over every field that `newer` reports.
    pub fn merge(&mut self, newer: &Self) {
        self.input = newer.input.or(self.input);
        self.output = newer.output.or(self.output);
        self.thought = newer.thought.or(self.thought);
        self.cached_read = newer.cached_read.or(self.cached_read);
        self.cached_write = newer.cached_write.or(self.cached_write);
        self.total = newer.total.or(self.total);
        self.scope = newer.scope;
    }
}
