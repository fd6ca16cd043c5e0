//! The handshake of `doctor`: the agent is started, greeted and ended.

use std::time::Instant;

use gembridge_core::model::{Failure, FailureKind};
use gembridge_drivers::setup::DriverSetup;
use gembridge_process::{GuardProgram, Spawner};

use crate::agents::{Agent, setup};
use crate::command::Context;
use crate::command::doctor::{Greeting, Probe};

pub struct Handshake;

impl Probe for Handshake {
    fn initialize(&self, agent: &Agent, context: &Context) -> Result<Greeting, Failure> {
        greeted(agent, context, |setup| setup)
    }

    fn initialize_for_guests(&self, agent: &Agent, context: &Context) -> Result<Greeting, Failure> {
        greeted(agent, context, |setup| setup.for_many().for_guests())
    }
}

fn greeted(
    agent: &Agent,
    context: &Context,
    changed: impl FnOnce(DriverSetup) -> DriverSetup,
) -> Result<Greeting, Failure> {
    let internal = |error: String| Failure::new(FailureKind::Internal, error);
    let event_loop = super::event_loop().map_err(|error| internal(error.error.to_string()))?;
    event_loop.block_on(async {
        let spawner = Spawner::new(GuardProgram::this_binary()).map_err(|error| internal(error.to_string()))?;
        let setup = changed(setup::of(agent, None, context, spawner.clone()));
        let began = Instant::now();
        let facts = setup.greet().await;
        let took = began.elapsed();
        spawner.shut_down().await;
        let facts = facts?;
        let text = |text: Option<std::sync::Arc<str>>| text.map(|text| text.to_string());
        Ok(Greeting { took, name: text(facts.name), version: text(facts.version) })
    })
}
