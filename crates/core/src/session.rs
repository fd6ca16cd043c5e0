//! Sessions: one task owns each, everyone else sends it commands.

mod actor;
mod agent;
pub mod conversation;
mod handle;
mod journal;
mod queue;
mod registry;
mod unfinished;

pub use handle::{Accepted, Command, Description, Footing, SessionHandle, TurnState};
pub use registry::{AgentSetup, NewSession, Sessions, SessionsConfig, Viewer};
