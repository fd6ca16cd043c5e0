//! One agent as two drivers: one for the operator's keys, with the operator's home and workspace, and one for guests, whose
//! processes share nothing with the operator's. An agent that cannot be had apart refuses guests, and says why.

use std::sync::{Arc, OnceLock};

use gembridge_core::BoxFuture;
use gembridge_core::driver::{Driver, Opened, SessionSpec};
use gembridge_core::model::{AgentFacts, AgentName, Failure, FailureKind, SessionFacts};
use gembridge_drivers::acp::{AcpDriver, AcpSetup, Audience, GuestFence, NoFence, ProcessStatus, Spares};
use gembridge_drivers::profile::{ApprovalMode, ChatTools, Execution, LoginFound};
use gembridge_process::pool::PoolStatus;

use super::withdrawal::OperatorSession;
use crate::keys::FileKeys;

pub struct TenantDriver {
    agent: AgentName,
    keys: Arc<FileKeys>,
    operators: AcpDriver,
    guests: Guests,
}

/// What becomes of callers that are not the operator.
enum Guests {
    /// Their own processes, begun when the first of them comes.
    Apart {
        driver: OnceLock<AcpDriver>,
        make: Box<dyn Fn() -> AcpDriver + Send + Sync>,
    },
    Refused(Refusal),
}

/// Why an agent serves no guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The agent works in the operator's own folder.
    Workspace,
    /// The agent's login is one person's own.
    PersonalLogin,
    /// The agent's own tools stay on in chat: it would read files and run commands on a guest's word.
    OwnTools,
    /// The agent may have a way to a file, and nothing keeps its process from the operator's.
    NoFence(NoFence),
}

impl Refusal {
    /// Decided by how the agent is set up for the operator.
    pub fn of(setup: &AcpSetup) -> Option<Self> {
        if setup.execution == Execution::Agent {
            Some(Self::Workspace)
        } else if setup.profile.tools.in_chat == ChatTools::On {
            Some(Self::OwnTools)
        } else if let (GuestFence::Absent(why), false) = (setup.guest_fence, setup.profile.tools.reach_no_file()) {
            Some(Self::NoFence(why))
        } else {
            login_for_guests(setup).err()
        }
    }

    pub fn reason(self) -> &'static str {
        match self {
            Self::Workspace => {
                "works in its operator's workspace, which is open to admin keys only; use another agent, or ask for an \
                 admin key"
            }
            Self::PersonalLogin => {
                "is logged in as its operator, whose login serves admin keys only; use another agent, or ask the operator \
                 for an API key of the agent"
            }
            Self::OwnTools => {
                "has tools that cannot be turned off in chat and reach the operator's files, so it serves admin keys only; \
                 use another agent"
            }
            Self::NoFence(_) => {
                "cannot be kept from the operator's files on this machine, so it serves admin keys only; use another agent, or \
                 ask the operator, whom `gembridge doctor` tells the reason"
            }
        }
    }
}

/// The login of a guest's process, whose home is empty. Where only the operator's home has one, there is none to serve with.
fn login_for_guests(setup: &AcpSetup) -> Result<Option<LoginFound>, Refusal> {
    let found = setup.profile.find_guest_login(&setup.environment);
    match found.as_ref().or(setup.login.as_ref()) {
        Some(login) if login.personal => Err(Refusal::PersonalLogin),
        _ => Ok(found),
    }
}

impl TenantDriver {
    /// Starts to warm the operator's spares. `setup` is asked for once for each side.
    pub fn new(
        agent: AgentName,
        keys: &Arc<FileKeys>,
        spares: Spares,
        setup: impl Fn() -> AcpSetup + Send + Sync + 'static,
    ) -> Self {
        let of_operator = setup();
        let guests = if let Some(refusal) = Refusal::of(&of_operator) {
            Guests::Refused(refusal)
        } else {
            let make = move || AcpDriver::new(for_guests(setup()), spares);
            Guests::Apart { driver: OnceLock::new(), make: Box::new(make) }
        };
        let driver = Self { agent, keys: Arc::clone(keys), operators: AcpDriver::new(of_operator, spares), guests };
        if spares == Spares::OfTheProfile && keys.has_users() {
            driver.warm_guests();
        }
        driver
    }

    /// Processes that serve a session.
    pub fn processes(&self) -> Vec<ProcessStatus> {
        let mut processes = self.operators.processes();
        processes.extend(self.of_guests().into_iter().flat_map(AcpDriver::processes));
        processes
    }

    /// What is kept ready, for the operator and for guests.
    pub fn pools(&self) -> impl Iterator<Item = PoolStatus> + '_ {
        std::iter::once(&self.operators).chain(self.of_guests()).map(AcpDriver::pool)
    }

    fn of_guests(&self) -> Option<&AcpDriver> {
        match &self.guests {
            Guests::Apart { driver, .. } => driver.get(),
            Guests::Refused(_) => None,
        }
    }

    fn warm_guests(&self) {
        if let Guests::Apart { driver, make } = &self.guests {
            driver.get_or_init(make);
        }
    }

    fn driver_for_guest(&self, spec: &SessionSpec) -> Result<&AcpDriver, Failure> {
        let agent = &self.agent;
        let refused = |why: &str| Failure::new(FailureKind::Forbidden, format!("agent `{agent}` {why}"));
        match &self.guests {
            Guests::Apart { .. } if spec.workspace.is_some() => {
                Err(refused("works in the operator's folders for admin keys only; name no folder"))
            }
            Guests::Apart { driver, make } => Ok(driver.get_or_init(make)),
            Guests::Refused(refusal) => Err(refused(refusal.reason())),
        }
    }
}

/// The same agent with nothing of the operator's: a home of its own, no mode but the default one, and of the tools that the
/// operator left on only those that reach no file and no command.
pub fn for_guests(setup: AcpSetup) -> AcpSetup {
    let login = login_for_guests(&setup).unwrap_or_default();
    let mut profile = setup.profile;
    let harmless = &profile.tools.harmless;
    profile.chosen.native_tools.retain(|tool| harmless.contains(tool));
    AcpSetup { profile, login, approval: ApprovalMode::Default, audience: Audience::Guests, ..setup }
}

impl Driver for TenantDriver {
    fn open(&self, spec: SessionSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
        if self.keys.is_operator(&spec.principal) {
            let owner = spec.principal.clone();
            let opening = self.operators.open(spec);
            return Box::pin(async move { Ok(OperatorSession::over(opening.await?, owner, &self.keys)) });
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
            tokio::join!(self.operators.shutdown(), guests);
        })
    }
}
