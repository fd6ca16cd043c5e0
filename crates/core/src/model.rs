//! The nouns of a conversation: what every dialect is decoded into and encoded from.

mod ask;
mod client_tool;
mod content;
mod event;
mod facts;
mod ids;
mod message;
mod outcome;
mod prompt;
mod text;
mod time;
mod tool;
mod usage;

pub use ask::{Answer, AnsweredBy, Ask, AskBody, AskOption, OptionKind, Subject};
pub use client_tool::{CallId, ClientCall, ClientTool, ForeignCallId, ReturnOutcome, ReturnedBy, ToolReturn};
pub use content::Content;
pub use event::{Dialect, Event, Frame, PlanEntry, PlanPriority, PlanStatus};
pub use facts::{AgentFacts, Command, Mode, Model, PromptAbilities, SessionFacts};
pub use ids::{AgentName, AskId, ClientId, Principal, Seq, SessionId, ToolCallId, TurnId};
pub use message::{CallName, Message, Part, Role};
pub use outcome::{Failure, FailureKind, Outcome, Stop};
pub use prompt::{Prompt, PromptLabel, blocks_with_names};
pub use text::Text;
pub use time::Timestamp;
pub use tool::{Location, Opaque, ToolCall, ToolContent, ToolKind, ToolStatus};
pub use usage::{Usage, UsageScope};
