//! The tool bridge: where agents find the tools that a client runs.
//!
//! An agent runs its own tools; what a client offers reaches it as one more tool server, on loopback and behind a token
//! of its own. A call waits here with the reply open until the session says what came of it. Which calls wait, and for
//! whom, is the session's to know: this crate keeps the open reply and nothing else.

mod bridge;
mod settling;
mod listener;
mod socket;
mod future_pool;
mod auth;
mod endpoint;
mod calls;
mod sessions;
mod server;
mod call;
mod list;
mod name;
mod content;
mod format;
pub mod shim;

pub use bridge::{Config, Counts, StartError, ToolBridge};
pub use settling::SettlingToolHost;
