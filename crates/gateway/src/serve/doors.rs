//! Who comes in decides what an agent gets. The operator's keys have the operator's home and workspace; everybody else has
//! neither: a process, a home and a folder of their own, or a refusal that says why.

use std::sync::{Arc, OnceLock};

use gembridge_core::BoxFuture;
use gembridge_core::driver::{Driver, Opened, SessionSpec};
use gembridge_core::model::{AgentFacts, AgentName, Failure, FailureKind, SessionFacts};
use gembridge_drivers::acp::{AcpDriver, AcpSetup, ProcessStatus, Spares};
use gembridge_drivers::profile::Execution;
use gembridge_process::pool::PoolStatus;

use crate::keys::FileKeys;

/// One agent, as its callers reach it.
pub struct Doors {
    agent: AgentName,
    keys: Arc<FileKeys>,
    operators: AcpDriver,
    others: Others,
}

/// What becomes of callers that are not the operator.
enum Others {
    /// Their own processes, begun when the first of them comes.
    Apart { driver: OnceLock<AcpDriver>, make: Box<dyn Fn() -> AcpDriver + Send + Sync> },
    /// The agent works in the operator's own folder.
    NotInTheWorkspace,
    /// The agent's login is one person's own.
    NotWithTheLogin,
}

impl Doors {
    /// Starts to warm the operator's spares. `setup` is asked for once for each side.
    pub fn new(
        agent: AgentName,
        keys: &Arc<FileKeys>,
        spares: Spares,
        setup: impl Fn() -> AcpSetup + Send + Sync + 'static,
    ) -> Self {
        let of_operator = setup();
        let others = if of_operator.execution == Execution::Agent {
            Others::NotInTheWorkspace
        } else if of_operator.login.as_ref().is_some_and(|login| login.personal) {
            Others::NotWithTheLogin
        } else {
            let make = move || {
                let setup = setup();
                AcpDriver::new(AcpSetup { profile: setup.profile.with_private_home(), ..setup }, spares)
            };
            Others::Apart { driver: OnceLock::new(), make: Box::new(make) }
        };
        let doors = Self { agent, keys: Arc::clone(keys), operators: AcpDriver::new(of_operator, spares), others };
        if spares == Spares::OfTheProfile && keys.has_users() {
            doors.warm_others();
        }
        doors
    }

    /// Processes that serve somebody.
    pub fn processes(&self) -> Vec<ProcessStatus> {
        let mut processes = self.operators.processes();
        processes.extend(self.of_others().into_iter().flat_map(AcpDriver::processes));
        processes
    }

    /// What is kept ready, for the operator and for everybody else.
    pub fn pools(&self) -> impl Iterator<Item = PoolStatus> + '_ {
        std::iter::once(&self.operators).chain(self.of_others()).map(AcpDriver::pool)
    }

    fn of_others(&self) -> Option<&AcpDriver> {
        match &self.others {
            Others::Apart { driver, .. } => driver.get(),
            Others::NotInTheWorkspace | Others::NotWithTheLogin => None,
        }
    }

    fn warm_others(&self) {
        if let Others::Apart { driver, make } = &self.others {
            driver.get_or_init(make);
        }
    }

    /// The driver for whoever is not the operator.
    fn door_of_others(&self, spec: &SessionSpec) -> Result<&AcpDriver, Failure> {
        let agent = &self.agent;
        let refused = |why: &str| Failure::new(FailureKind::Forbidden, format!("agent `{agent}` {why}"));
        match &self.others {
            Others::Apart { .. } if spec.workspace.is_some() => {
                Err(refused("works in the operator's folders for admin keys only; name no folder"))
            }
            Others::Apart { driver, make } => Ok(driver.get_or_init(make)),
            Others::NotInTheWorkspace => Err(refused(
                "works in its operator's workspace, which is open to admin keys only; use another agent, or ask for an \
                 admin key",
            )),
            Others::NotWithTheLogin => Err(refused(
                "is logged in as its operator, whose login serves admin keys only; use another agent, or ask the operator \
                 for an API key of the agent",
            )),
        }
    }
}

impl Driver for Doors {
    fn open(&self, spec: SessionSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
        if self.keys.is_operator(&spec.principal) {
            return self.operators.open(spec);
        }
        match self.door_of_others(&spec) {
            Ok(driver) => driver.open(spec),
            Err(refusal) => Box::pin(std::future::ready(Err(refusal))),
        }
    }

    fn facts(&self) -> Option<AgentFacts> {
        self.operators.facts().or_else(|| self.of_others()?.facts())
    }

    fn offers(&self) -> Option<Arc<SessionFacts>> {
        self.operators.offers().or_else(|| self.of_others()?.offers())
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let others = async {
                if let Some(others) = self.of_others() {
                    others.shutdown().await;
                }
            };
            tokio::join!(self.operators.shutdown(), others);
        })
    }
}
