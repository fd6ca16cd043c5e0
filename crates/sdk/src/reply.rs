//! What comes of a prompt.

use gembridge_core::model as core;
pub use gembridge_unified::UnifiedMessage;

/// The answer to a prompt.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reply {
    /// What the agent said. Empty where it said nothing that is text.
    pub text: String,
    /// What the agent thought, where it tells.
    pub thoughts: String,
    /// Tokens of all rounds, as the agent reports them. `None` where it reports none.
    pub usage: Option<Usage>,
    /// What was called: tools of the agent's own and functions of this program, in the order in which they began.
    pub tools: Vec<ToolUse>,
    pub stop: Stop,
    /// The last plan that the agent told.
    pub plan: Vec<PlanEntry>,
    /// How often the agent was prompted: more than once where a completion check let it go on.
    pub rounds: usize,
    /// Whether the completion check was content with it; without one it is.
    pub complete: bool,
    /// All that was said and called, as unified messages.
    pub transcript: Vec<UnifiedMessage>,
    /// What went not as asked and is no failure, such as a mode that the agent does not have.
    pub warnings: Vec<String>,
    /// The session in which it was said, by our name of it.
    pub session: String,
}

impl Reply {
    /// The thoughts and then the text; `None` where there is no text.
    #[must_use]
    pub fn text_with_thoughts(&self) -> Option<String> {
        (!self.text.is_empty()).then(|| format!("{}{}", self.thoughts, self.text))
    }
}

/// An answer of a type.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Evaluated<T> {
    pub value: T,
    pub reply: Reply,
}

/// Tokens, as far as the agent reports them: what it does not tell is absent, never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    pub input: Option<u64>,
    pub output: Option<u64>,
    /// Those of `input` that came from a cache.
    pub cached: Option<u64>,
    /// Those that the agent thought with.
    pub thought: Option<u64>,
}

impl Usage {
    pub(crate) fn of(usage: &core::Usage) -> Self {
        Self { input: usage.input, output: usage.output, cached: usage.cached_read, thought: usage.thought }
    }

    /// What was used in both; what neither tells stays absent.
    pub(crate) fn plus(self, other: Self) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
        };
        Self {
            input: sum(self.input, other.input),
            output: sum(self.output, other.output),
            cached: sum(self.cached, other.cached),
            thought: sum(self.thought, other.thought),
        }
    }

    pub(crate) fn tokens(self) -> u64 {
        self.input.unwrap_or(0).saturating_add(self.output.unwrap_or(0))
    }

    /// Without tokens in and out there is nothing to go by.
    pub(crate) fn told(self) -> Option<Self> {
        (self.input.is_some() || self.output.is_some()).then_some(self)
    }
}

/// Why the agent stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
    /// A text of [`stop_at`](crate::Prompt::stop_at) came.
    StopText,
    /// A reason that we do not know, as the agent spelled it.
    Other(String),
}

impl From<&core::Stop> for Stop {
    fn from(stop: &core::Stop) -> Self {
        match stop {
            core::Stop::EndTurn => Self::EndTurn,
            core::Stop::MaxTokens => Self::MaxTokens,
            core::Stop::MaxTurnRequests => Self::MaxTurnRequests,
            core::Stop::Refusal => Self::Refusal,
            core::Stop::Other(reason) => Self::Other(reason.to_string()),
        }
    }
}

/// A call of a tool, as far as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolUse {
    /// The agent's own name of the call; one of ours where it gave none.
    pub id: String,
    /// The tool's name: `acp:` and the title for a tool of the agent's own, the function's name for one of this program.
    pub name: String,
    pub origin: ToolOrigin,
    /// `read`, `edit`, `execute` and the like.
    pub kind: &'static str,
    pub status: ToolStatus,
    /// The arguments as JSON, where they are told.
    pub input: Option<String>,
    /// What came of it, of the agent's own tools at most 1000 characters.
    pub output: Option<String>,
}

impl ToolUse {
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.status == ToolStatus::Completed
    }
}

/// Whose tool it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolOrigin {
    Agent,
    Program,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolStatus {
    Pending,
    Running,
    Completed,
    Failed,
}

/// A step that the agent plans.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanEntry {
    pub content: String,
    pub status: PlanStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanStatus {
    Pending,
    InProgress,
    Completed,
}

impl From<&core::PlanEntry> for PlanEntry {
    fn from(entry: &core::PlanEntry) -> Self {
        let status = match entry.status {
            core::PlanStatus::Pending => PlanStatus::Pending,
            core::PlanStatus::InProgress => PlanStatus::InProgress,
            core::PlanStatus::Completed => PlanStatus::Completed,
        };
        Self { content: entry.content.to_string(), status }
    }
}
