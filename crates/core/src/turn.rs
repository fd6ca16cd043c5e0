//! One turn: from the prompt that went to the agent to the one end that it has.

mod clock;
mod policy;
mod state;

pub use policy::{Attendance, Otherwise, PermissionPolicy};
pub use state::{Action, NewCall, Turn};
