//! The wiring: agents, sessions and stores joined for one command. Protocol details are elsewhere.

mod agent;
mod chat;
mod follow;
mod house;
mod probe;
mod run;

use std::future::Future;

use crate::command::Context;
use crate::command::doctor::Probe;
use crate::command::run::{RunRequest, SessionRequest};
use crate::exit::{CommandError, CommandResult};

/// One turn, printed.
pub fn run(request: &RunRequest, context: &Context) -> CommandResult {
    on_runtime(run::run(request, context))
}

/// Turns until the person leaves.
pub fn chat(request: &SessionRequest, context: &Context) -> CommandResult {
    on_runtime(chat::chat(request, context))
}

/// The handshake that `doctor` tries.
pub fn probe() -> Option<Box<dyn Probe>> {
    Some(Box::new(probe::Handshake))
}

/// Runs a command to its end on a runtime of its own.
fn on_runtime<T>(command: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| anyhow::anyhow!("cannot start the runtime: {error}"))?;
    let done = runtime.block_on(command);
    // A thread that waits for the keyboard cannot be ended, and nobody needs it any more.
    runtime.shutdown_background();
    done
}
