//! Sessions: one task owns each, everyone else sends it commands.

mod actor;
mod agent;
mod handle;
mod journal;
mod queue;
mod registry;
mod unfinished;

pub use handle::{Accepted, Command, Description, SessionHandle, TurnState};
pub use registry::{AgentSetup, NewSession, Sessions, SessionsConfig, Viewer};
