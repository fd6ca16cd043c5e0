//! One agent as two drivers: one for the operator's keys, with the operator's home and workspace, and one for guests, whose
//! processes share nothing with the operator's. An agent that cannot be had apart refuses guests, and says why.

use std::sync::{Arc, OnceLock};

use gembridge_core::BoxFuture;
use gembridge_core::driver::{Driver, Opened, SessionSpec};
use gembridge_core::model::{AgentFacts, AgentName, Failure, FailureKind, SessionFacts};
use gembridge_drivers::setup::{DriverSetup, GuestRefusal, ManagedDriver, ProcessStatus, Spares};
use gembridge_process::pool::PoolStatus;

use super::folder_drivers::FolderDrivers;
use super::withdrawal::OperatorSession;
use crate::keys::FileKeys;

pub struct TenantDriver {
    agent: AgentName,
    keys: Arc<FileKeys>,
    operators: Arc<dyn ManagedDriver>,
    guests: Guests,
    folders: FolderDrivers,
}

/// What becomes of callers that are not the operator.
enum Guests {
    /// Their own processes, begun when the first of them comes.
    Apart {
        driver: OnceLock<Arc<dyn ManagedDriver>>,
        make: Box<dyn Fn() -> Arc<dyn ManagedDriver> + Send + Sync>,
    },
    Refused(GuestRefusal),
}

impl TenantDriver {
    /// Starts to warm the operator's spares.
    pub fn new(agent: AgentName, keys: &Arc<FileKeys>, spares: Spares, setup: DriverSetup) -> Self {
        let guests = if let Some(refusal) = setup.guest_refusal() {
            Guests::Refused(refusal)
        } else {
            let for_guests = setup.clone().for_guests();
            let make = move || for_guests.clone().start(spares);
            Guests::Apart { driver: OnceLock::new(), make: Box::new(make) }
        };
        let folders = FolderDrivers::new(&setup);
        let driver = Self { agent, keys: Arc::clone(keys), operators: setup.start(spares), guests, folders };
        if spares == Spares::OfTheProfile && keys.has_users() {
            driver.warm_guests();
        }
        driver
    }

    /// Processes that serve a session.
    pub fn processes(&self) -> Vec<ProcessStatus> {
        let mut processes = self.operators.processes();
        processes.extend(self.folders.all().iter().flat_map(|driver| driver.processes()));
        processes.extend(self.of_guests().into_iter().flat_map(ManagedDriver::processes));
        processes
    }

    /// What is kept ready, for the operator and for guests.
    pub fn pools(&self) -> impl Iterator<Item = PoolStatus> + '_ {
        std::iter::once(&*self.operators).chain(self.of_guests()).flat_map(ManagedDriver::pools)
    }

    fn of_guests(&self) -> Option<&dyn ManagedDriver> {
        match &self.guests {
            Guests::Apart { driver, .. } => driver.get().map(|driver| &**driver),
            Guests::Refused(_) => None,
        }
    }

    fn warm_guests(&self) {
        if let Guests::Apart { driver, make } = &self.guests {
            driver.get_or_init(make);
        }
    }

    fn driver_for_guest(&self, spec: &SessionSpec) -> Result<&dyn ManagedDriver, Failure> {
        let agent = &self.agent;
        let refused = |why: &str| Failure::new(FailureKind::Forbidden, format!("agent `{agent}` {why}"));
        match &self.guests {
            Guests::Apart { .. } if spec.workspace.is_some() => {
                Err(refused("works in the operator's folders for admin keys only; name no folder"))
            }
            Guests::Apart { driver, make } => Ok(&**driver.get_or_init(make)),
            Guests::Refused(refusal) => Err(refused(reason(*refusal))),
        }
    }
}

/// What a guest is told who asks for such an agent.
fn reason(refusal: GuestRefusal) -> &'static str {
    match refusal {
        GuestRefusal::Workspace => {
            "works in its operator's workspace, which is open to admin keys only; use another agent, or ask for an \
             admin key"
        }
        GuestRefusal::PersonalLogin => {
            "is logged in as its operator, whose login serves admin keys only; use another agent, or ask the operator \
             for an API key of the agent"
        }
        GuestRefusal::OwnTools => {
            "has tools that cannot be turned off in chat and reach the operator's files, so it serves admin keys only; \
             use another agent"
        }
        GuestRefusal::Headless => {
            "runs headless, which serves admin keys only; use another agent, or ask the operator to run it by `acp`"
        }
        GuestRefusal::A2a => "is an A2A server of its operator, which serves admin keys only; use another agent",
        GuestRefusal::NoFence(_) => {
            "cannot be kept from the operator's files on this machine, so it serves admin keys only; use another agent, or \
             ask the operator, whom `gembridge doctor` tells the reason"
        }
    }
}

impl Driver for TenantDriver {
    fn open(&self, spec: SessionSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
        if self.keys.is_operator(&spec.principal) {
            let owner = spec.principal.clone();
            let driver = match self.folders.driver_for(spec.workspace.as_deref()) {
                Ok(driver) => driver.unwrap_or_else(|| Arc::clone(&self.operators)),
                Err(failure) => return Box::pin(std::future::ready(Err(failure))),
            };
            return Box::pin(async move { Ok(OperatorSession::over(driver.open(spec).await?, owner, &self.keys)) });
        }
        match self.driver_for_guest(&spec) {
            Ok(driver) => driver.open(spec),
            Err(refusal) => Box::pin(std::future::ready(Err(refusal))),
        }
    }

    fn facts(&self) -> Option<AgentFacts> {
        self.operators.facts().or_else(|| self.of_guests()?.facts())
    }

    fn offers(&self) -> Option<Arc<SessionFacts>> {
        self.operators.offers().or_else(|| self.of_guests()?.offers())
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let guests = async {
                if let Some(guests) = self.of_guests() {
                    guests.shutdown().await;
                }
            };
            let in_folders = async {
                for driver in self.folders.all() {
                    driver.shutdown().await;
                }
            };
            tokio::join!(self.operators.shutdown(), guests, in_folders);
        })
    }
}
