//! The answer of one round, as far as it has come.

use gembridge_core::exchange::Finish;
use gembridge_core::model::{Ask, ClientCall, Outcome, Seq, TurnId};

use super::tool_tracker::ToolTracker;
use crate::reply::{PlanEntry, Stop, ToolUse};

/// What a round came to.
pub(super) struct Answer {
    pub text: String,
    pub thoughts: String,
    pub tools: Vec<ToolUse>,
    pub plan: Vec<PlanEntry>,
    pub stop: Stop,
}

/// A round that goes on.
pub(super) struct Draft {
    pub text: String,
    pub thoughts: String,
    pub tools: ToolTracker,
    pub plan: Vec<PlanEntry>,
    /// Functions of this program that the agent waits for.
    pub calls: Vec<ClientCall>,
    /// Permissions that are not decided yet.
    pub asked: Vec<Ask>,
    pub turn: Option<TurnId>,
    /// The last entry that was seen.
    pub seen: Seq,
    pub outcome: Option<Outcome>,
    pub finish: Option<Finish>,
    pub is_refused: bool,
}

impl Draft {
    pub(super) fn new(tools: ToolTracker) -> Self {
        Self {
            text: String::new(),
            thoughts: String::new(),
            tools,
            plan: Vec::new(),
            calls: Vec::new(),
            asked: Vec::new(),
            turn: None,
            seen: Seq::START,
            outcome: None,
            finish: None,
            is_refused: false,
        }
    }

    pub(super) fn into_answer(self) -> Answer {
        let stop = match (&self.outcome, self.finish) {
            _ if self.is_refused => Stop::Refusal,
            (Some(Outcome::Finished(stop)), _) => stop.into(),
            (_, Some(Finish::Length)) => Stop::MaxTokens,
            (_, Some(Finish::ContentFilter)) => Stop::Refusal,
            (_, Some(Finish::Stop | Finish::ToolCalls) | None) => Stop::StopText,
        };
        let Self { text, thoughts, tools, plan, .. } = self;
        Answer { text, thoughts, tools: tools.into_uses(), plan, stop }
    }
}
