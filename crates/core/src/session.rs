//! Sessions: one task owns each, everyone else sends it commands.

mod actor;
mod agent;
mod ask_ids;
mod result_receipts;
mod handle;
mod history_replay;
mod journal;
mod published;
mod overview;
mod session_tools;
mod queue;
mod reader;
mod registry;
mod crash_recovery;

pub use handle::{
    Accepted, Command, Description, Joined, Precondition, Presence, Resumed, Resumption, SessionHandle, Submission,
    SubmitResults, TurnState, Unanswered,
};
pub(crate) use history_replay::Past as PastTurns;
pub use overview::{ListWatch, SessionChange, SessionStatus, SessionView, Watchers};
pub use reader::SessionReader;
pub use registry::{AgentSetup, NewSession, Sessions, SessionsConfig, Viewer};
