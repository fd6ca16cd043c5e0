//! Sessions: one task owns each, everyone else sends it commands.

mod actor;
mod agent;
mod given;
mod handle;
mod history_replay;
mod journal;
mod nameplate;
mod overview;
mod place;
mod queue;
mod reader;
mod registry;
mod unfinished;

pub use handle::{
    Accepted, Command, Description, Footing, GiveBack, Joined, Presence, Resumed, Resumption, SessionHandle,
    Submission, TurnState, Unanswered,
};
pub use overview::{ListWatch, SessionChange, SessionView, Standing, Watchers};
pub use reader::SessionReader;
pub use registry::{AgentSetup, NewSession, Sessions, SessionsConfig, Viewer};
