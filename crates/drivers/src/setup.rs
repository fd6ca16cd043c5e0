//! From a profile to a driver: everything that decides how an agent is run, whatever protocol it speaks.
//!
//! A program names its [`Host`] once, makes a [`DriverSetup`] of each agent, and starts it. What comes back is a
//! [`ManagedDriver`]: the driver that sessions use, with what an operator may want to see of it.

mod guests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gembridge_core::driver::Driver;
use gembridge_core::limit::Limits;
use gembridge_core::model::{AgentFacts, Failure, ToolKind};
use gembridge_process::{PoolStatus, RestartPolicy, Spawner};

use crate::a2a::A2aDriver;
use crate::acp::{self, AcpDriver};
use crate::headless::HeadlessDriver;
use crate::profile::{self, ApprovalMode, Environment, Execution, LoginFound, Profile, Sandbox, Trust, Version};
pub use guests::GuestRefusal;

/// What a standing permission may cover: neither what destroys nor what cannot be told, nor a change of the rules.
pub const HARMLESS: [ToolKind; 5] =
    [ToolKind::Read, ToolKind::Search, ToolKind::Think, ToolKind::Fetch, ToolKind::Edit];

/// What a program gives to all its agents.
#[derive(Clone)]
pub struct Host {
    /// The environment that names are passed on from.
    pub environment: Environment,
    /// Where private folders are made.
    pub private: PathBuf,
    pub cache: PathBuf,
    /// Where each agent with a home that stays has it.
    pub homes: PathBuf,
    /// The longest line that an agent may write, in bytes.
    pub line: usize,
    /// What files in a workspace leave to others, as its owner would have it. Everything else is private.
    pub umask: u32,
    pub spawner: Spawner,
    /// The program's own binary, which stands in for the tool server before agents that take none over HTTP.
    pub shim: Option<PathBuf>,
    /// What keeps the processes of guests from the operator's files.
    pub guest_fence: GuestFence,
    /// By how many steps of `nice` the processes of guests stand behind all others.
    pub guest_nice: u8,
}

/// Everything that decides how one configured agent is started. All of it is the operator's word.
#[derive(Clone)]
pub struct DriverSetup {
    pub profile: Profile,
    pub program: PathBuf,
    /// `None`: asked for if the agent does not start.
    pub version: Option<Version>,
    pub execution: Execution,
    /// Where it works in agent mode. Chat sessions work in an empty folder of their process, or in one each.
    pub workspace: Option<PathBuf>,
    pub trust: Trust,
    /// The environment that names are passed on from.
    pub environment: Environment,
    pub login: Option<LoginFound>,
    pub model: Option<String>,
    pub approval: ApprovalMode,
    pub sandbox: Sandbox,
    pub audience: Audience,
    /// What keeps the processes from the operator's files, where they serve guests.
    pub guest_fence: GuestFence,
    /// By how many steps of `nice` they stand behind all others, where they serve guests.
    pub guest_nice: u8,
    pub home: Home,
    /// What files in a workspace leave to others, as its owner would have it. Everything else is private.
    pub umask: u32,
    /// Where private folders are made.
    pub private: PathBuf,
    pub cache: PathBuf,
    pub spawner: Spawner,
    /// The program's own binary, which stands in for the tool server before agents that take none over HTTP.
    pub shim: Option<PathBuf>,
    pub forms: Forms,
    pub access: ClientAccess,
    pub restart: RestartPolicy,
    /// The longest line that the agent may write, in bytes.
    pub line: usize,
    /// How many sessions may wait for a process at once. Whoever bounds the sessions that are open bounds these too.
    pub waiting: usize,
}

/// Enough for one operator.
const WAITING: usize = 64;

impl DriverSetup {
    /// For one operator: with a home that stays, in a folder that the operator chose or in none.
    pub fn new(profile: Profile, program: PathBuf, workspace: Option<PathBuf>, host: &Host) -> Self {
        Self {
            version: None,
            execution: if workspace.is_some() { Execution::Agent } else { Execution::Chat },
            workspace,
            trust: Trust::Trusted,
            login: profile.find_login(&host.environment, &|path| path.exists()),
            environment: host.environment.clone(),
            model: None,
            approval: profile.chosen.approval,
            sandbox: profile.chosen.sandbox,
            audience: Audience::Operators,
            guest_fence: host.guest_fence,
            guest_nice: host.guest_nice,
            home: Home::Lasting(host.homes.join(&profile.name)),
            umask: host.umask,
            private: host.private.clone(),
            cache: host.cache.clone(),
            spawner: host.spawner.clone(),
            shim: host.shim.clone(),
            forms: Forms::NotOffered,
            access: ClientAccess::ALL,
            restart: RestartPolicy::default(),
            line: host.line,
            waiting: WAITING,
            profile,
            program,
        }
    }

    /// A home for each process, and questions that somebody may answer: as a server with several clients needs it.
    #[must_use]
    pub fn for_many(self) -> Self {
        Self { home: Home::OfTheProcess, forms: Forms::Shown, ..self }
    }

    /// An agent may not take longer to start than its whole turn may take.
    #[must_use]
    pub fn starting_within(mut self, turn: Duration) -> Self {
        self.profile.limits.start_seconds = self.profile.limits.start_seconds.min(turn.as_secs().max(1));
        self
    }

    /// Starts to warm the spares at once.
    pub fn start(self, spares: Spares) -> Arc<dyn ManagedDriver> {
        match self.profile.driver {
            profile::Driver::Acp => Arc::new(AcpDriver::new(self, spares)),
            profile::Driver::Headless => {
                let headless = self.profile.headless.clone().unwrap_or_default();
                Arc::new(HeadlessDriver::new(self, headless))
            }
            profile::Driver::A2a => {
                let a2a = self.profile.a2a.clone().unwrap_or_default();
                Arc::new(A2aDriver::new(self, a2a))
            }
        }
    }

    /// Starts the agent, does the handshake and ends it again: what it says of itself.
    pub async fn greet(&self) -> Result<AgentFacts, Failure> {
        match self.profile.driver {
            profile::Driver::Acp => acp::greet(self).await,
            // There is no handshake: that it is installed is all that can be known without a prompt.
            profile::Driver::Headless => Ok(AgentFacts::default()),
            profile::Driver::A2a => {
                let a2a = self.profile.a2a.clone().unwrap_or_default();
                A2aDriver::new(self.clone(), a2a).greet().await
            }
        }
    }
}

/// A driver with what an operator may want to see of it.
pub trait ManagedDriver: Driver {
    /// The processes that serve a session at this moment.
    fn processes(&self) -> Vec<ProcessStatus>;

    /// What is kept ready.
    fn pools(&self) -> Vec<PoolStatus>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStatus {
    pub pid: Option<u32>,
    pub sessions: u32,
    /// It takes no new sessions.
    pub condemned: bool,
}

/// Whom the sessions of a driver serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    Operators,
    /// Keys without the operator's rights. Nothing of the operator's may be reached through the agent.
    Guests,
}

/// What keeps the processes of guests from the operator's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestFence {
    /// The kernel.
    Landlock,
    /// Nothing: guests are served only by an agent that has no way to a file.
    Absent(NoFence),
}

/// Why there is no fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFence {
    /// The kernel has none that governs every access to a file.
    Kernel,
    /// The operator turned it off.
    TurnedOff,
}

/// Whether somebody may be there who fills in what an agent would like to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forms {
    Shown,
    /// Agents are not told that they could ask.
    NotOffered,
}

/// What an agent in a workspace may have done by us instead of doing it itself. In chat it is nothing in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAccess {
    pub reads: bool,
    pub writes: bool,
    pub terminals: bool,
}

impl ClientAccess {
    pub const ALL: Self = Self { reads: true, writes: true, terminals: true };
    pub const NONE: Self = Self { reads: false, writes: false, terminals: false };
}

/// Where an agent that gets a home of its own has it.
#[derive(Clone, Debug)]
pub enum Home {
    /// One for each process, which goes with it: nothing is shared between principals.
    OfTheProcess,
    /// One that stays, so that the agent finds its sessions again. For one principal only.
    Lasting(PathBuf),
}

/// Whether processes are kept warm for the next session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spares {
    OfTheProfile,
    /// For a program that needs one session and ends.
    None,
}

/// The bounds of turns as far as the agent decides them.
pub fn limits(profile: &Profile) -> Limits {
    Limits {
        quiet: Duration::from_millis(profile.limits.quiet_ms),
        cancel_grace: Duration::from_millis(profile.limits.cancel_grace_ms),
        tool_result: tool_result(profile),
        gather: Duration::from_millis(profile.mcp.gather_ms),
        tools_ready: Duration::from_secs(profile.mcp.list_seconds),
        ..Limits::default()
    }
}

/// A client's tool may take as long as the agent waits for it, less the time in which the agent hears that it did not.
fn tool_result(profile: &Profile) -> Duration {
    const BEFORE: Duration = Duration::from_secs(10);
    let longest = Limits::default().tool_result;
    let agents = profile.mcp.call_seconds.map(|seconds| Duration::from_secs(seconds).saturating_sub(BEFORE));
    agents.map_or(longest, |agents| agents.min(longest))
}
