//! One handshake with an agent, for `doctor`.

use std::time::Duration;

use gembridge_core::model::{Failure, FailureKind};
use gembridge_drivers::acp::{Home, greet};

use super::{agent, house, on_runtime};
use crate::agents::Agent;
use crate::command::Context;
use crate::command::doctor::{Greeting, Probe};
use crate::exit::CommandError;

pub struct Handshake;

impl Probe for Handshake {
    fn initialize(&self, agent: &Agent, context: &Context) -> Result<Greeting, Failure> {
        let shaken = on_runtime(async {
            let spawner = house::spawner()?;
            house::prepare(context)?;
            let setup = agent::setup(agent.clone(), None, Home::OfTheProcess, spawner.clone(), context);
            let began = tokio::time::Instant::now();
            let greeted = greet(&setup).await;
            let took = began.elapsed();
            spawner.shut_down().await;
            Ok::<(_, Duration), CommandError>((greeted, took))
        });
        let (greeted, took) = shaken.map_err(|failed| Failure::new(FailureKind::Internal, failed.error.to_string()))?;
        let facts = greeted?;
        let text = |text: Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
        Ok(Greeting { took, name: text(facts.name), version: text(facts.version) })
    }
}
