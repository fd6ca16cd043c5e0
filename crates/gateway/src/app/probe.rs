//! The handshake of `doctor`: the agent is started, greeted and ended.

use std::time::Instant;

use gembridge_core::model::{Failure, FailureKind};
use gembridge_drivers::acp::{AcpSetup, Home, greet};
use gembridge_process::{GuardProgram, Spawner};

use super::bridge;
use crate::agents::Agent;
use crate::command::Context;
use crate::command::doctor::{Greeting, Probe};
use crate::serve::for_guests;

pub struct Handshake;

impl Probe for Handshake {
    fn initialize(&self, agent: &Agent, context: &Context) -> Result<Greeting, Failure> {
        greeted(agent, context, |setup| setup)
    }

    fn initialize_for_guests(&self, agent: &Agent, context: &Context) -> Result<Greeting, Failure> {
        greeted(agent, context, |setup| for_guests(AcpSetup { home: Home::OfTheProcess, ..setup }))
    }
}

fn greeted(agent: &Agent, context: &Context, changed: impl FnOnce(AcpSetup) -> AcpSetup) -> Result<Greeting, Failure> {
    let internal = |error: String| Failure::new(FailureKind::Internal, error);
    let event_loop = super::event_loop().map_err(|error| internal(error.error.to_string()))?;
    event_loop.block_on(async {
        let spawner = Spawner::new(GuardProgram::this_binary()).map_err(|error| internal(error.to_string()))?;
        let setup = changed(bridge::probe_setup(agent, context, spawner.clone()));
        let began = Instant::now();
        let facts = greet(&setup).await;
        let took = began.elapsed();
        spawner.shut_down().await;
        let facts = facts?;
        let text = |text: Option<std::sync::Arc<str>>| text.map(|text| text.to_string());
        Ok(Greeting { took, name: text(facts.name), version: text(facts.version) })
    })
}
