//! The handshake of `doctor`: a session is opened with the agent and closed again.

use std::time::Instant;

use gembridge_core::driver::{Driver as _, Parting, SessionSpec};
use gembridge_core::model::{Failure, FailureKind};
use gembridge_drivers::acp::{AcpDriver, Spares};
use gembridge_process::{GuardProgram, Spawner};

use super::bridge;
use crate::agents::Agent;
use crate::command::Context;
use crate::command::doctor::{Greeting, Probe};

pub struct Handshake;

impl Probe for Handshake {
    fn initialize(&self, agent: &Agent, context: &Context) -> Result<Greeting, Failure> {
        let internal = |error: String| Failure::new(FailureKind::Internal, error);
        let event_loop = super::event_loop().map_err(|error| internal(error.error.to_string()))?;
        event_loop.block_on(async {
            let spawner = Spawner::new(GuardProgram::this_binary()).map_err(|error| internal(error.to_string()))?;
            let driver = AcpDriver::new(bridge::probe_setup(agent, context, spawner.clone()).await, Spares::None);
            let began = Instant::now();
            let opened = driver.open(SessionSpec::plain()).await;
            let took = began.elapsed();
            let facts = driver.facts().unwrap_or_default();
            let result = match opened {
                Ok(opened) => {
                    opened.agent.close(Parting::Kill).await;
                    let text = |text: Option<std::sync::Arc<str>>| text.map(|text| text.to_string());
                    Ok(Greeting { took, name: text(facts.name), version: text(facts.version) })
                }
                Err(failure) => Err(failure),
            };
            driver.shutdown().await;
            spawner.shut_down().await;
            result
        })
    }
}
