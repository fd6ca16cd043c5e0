//! The wiring: agents, sessions and stores joined for one command.

use crate::command::Context;
use crate::command::run::{RunRequest, SessionRequest};
use crate::exit::{CommandError, CommandResult};

/// One turn, printed.
pub fn run(request: &RunRequest, _: &Context) -> CommandResult {
    Err(CommandError::usage(format!("`run` is not wired yet: {request:?}")))
}

/// Turns until the person leaves.
pub fn chat(request: &SessionRequest, _: &Context) -> CommandResult {
    Err(CommandError::usage(format!("`chat` is not wired yet: {request:?}")))
}

/// The handshake that `doctor` makes.
pub fn probe() -> Option<Box<dyn crate::command::doctor::Probe>> {
    None
}
