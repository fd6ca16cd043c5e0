//! The wiring: store, agent and sessions joined for one command, and taken apart again when it is done.

pub mod bridge;
mod chat;
pub mod import;
mod output;
mod input;
mod line_editor;
mod interrupt;
mod probe;
mod run;
mod turn;

use anyhow::Context as _;

use crate::command::Context;
use crate::command::doctor::Probe;
use crate::command::run::{RunRequest, SessionRequest};
use crate::exit::{CommandError, CommandResult};
use bridge::Bridge;

/// One turn, printed.
pub fn run(request: &RunRequest, context: &Context) -> CommandResult {
    event_loop()?.block_on(async {
        let bridge = Bridge::open(&request.session, context).await?;
        let done = run::run(&bridge, request, context).await;
        bridge.close().await;
        done
    })
}

/// Turns until the person leaves.
pub fn chat(request: &SessionRequest, context: &Context) -> CommandResult {
    event_loop()?.block_on(async {
        let bridge = Bridge::open(request, context).await?;
        let done = chat::chat(&bridge, request, context).await;
        bridge.close().await;
        done
    })
}

/// The handshake that `doctor` makes.
pub fn probe() -> Box<dyn Probe> {
    Box::new(probe::Handshake)
}

/// Two threads: what waits for a slow terminal must not keep Ctrl-C waiting.
fn event_loop() -> Result<tokio::runtime::Runtime, CommandError> {
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    Ok(built.context("no event loop; check the limit of open files (`ulimit -n`)")?)
}
