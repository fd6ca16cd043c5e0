//! The parts of the gateway that an adapter needs, joined in the caller's process: sessions, exchange, driver, tool bridge.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gembridge_core::admission::{Admission, AdmissionLimits};
use gembridge_core::exchange::{Catalog, CatalogConfig, ExchangeConfig, Exchanges, UnknownModels, Unlisted};
use gembridge_core::limit::Limits;
use gembridge_core::model::{AgentName, Principal, PromptAbilities};
use gembridge_core::session::{AgentSetup, Sessions, SessionsConfig};
use gembridge_core::store::{MemoryStore, Store};
use gembridge_core::turn::PermissionPolicy;
use gembridge_drivers::profile::{Environment, Profile, Trust};
use gembridge_drivers::setup::{
    self, ClientAccess, DriverSetup, GuestFence, Home, Host, ManagedDriver, NoFence, Spares,
};
use gembridge_drivers::workspace::{PrivateDir, sweep_private_dirs};
use gembridge_process::Spawner;
use gembridge_tools::{Config, SettlingToolHost, StartError, ToolBridge};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::builder::{AdapterTerms, AgentHome};
use crate::error::{ErrorKind, EvaluateError};
use crate::helper_process::HelperProgram;
use crate::permission::Permissions;

/// Everything that an adapter was built with.
pub(crate) struct EngineConfig {
    /// The adapter's name.
    pub adapter: String,
    pub profile: Profile,
    pub program: PathBuf,
    pub environment: Environment,
    pub workspace: Option<PathBuf>,
    pub trust: Trust,
    pub helper: HelperProgram,
    pub home: AgentHome,
    pub access: ClientAccess,
    pub startup: Duration,
    pub quiet: Duration,
    pub cancel_grace: Duration,
    pub terms: AdapterTerms,
}

/// What runs behind an adapter.
pub(crate) struct Engine {
    pub(crate) config: Arc<EngineConfig>,
    pub(crate) agent: AgentName,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) exchanges: Arc<Exchanges>,
    driver: Arc<dyn ManagedDriver>,
    bridge: ToolBridge,
    spawner: Spawner,
    /// Agents that are opened at once: what waits longer than that is not slow to start.
    pub(crate) openings: Semaphore,
    /// Sessions on their way out.
    pub(crate) tasks: TaskTracker,
    pub(crate) runtime: Handle,
    /// Holds the private folders of sessions and processes. Goes last.
    pub(crate) folder: Arc<PrivateDir>,
}

/// Whoever calls the library is one owner: processes are shared between its sessions.
pub(crate) fn owner() -> Principal {
    Principal::new("program")
}

/// Sessions that may wait for a process at once, and that may be open.
const SESSIONS: usize = 4_096;
/// Prompts that may wait for a turn.
const WAITING: usize = 4_096;
/// Some agents open their sessions one by one.
const OPENINGS: usize = 8;
/// How long the tool server may take to listen.
const BRIDGE_START: Duration = Duration::from_secs(5);

impl Engine {
    pub(crate) async fn start(config: Arc<EngineConfig>) -> Result<Self, EvaluateError> {
        let folder = Arc::new(private_folder(&config).map_err(|error| {
            EvaluateError::request(
                ErrorKind::Internal,
                format!("cannot make a private folder: {error}; check `TMPDIR`"),
            )
        })?);
        let bridge = start_bridge(&config.profile).await?;
        let spawner = Spawner::new(config.helper.guard.clone()).map_err(|error| {
            EvaluateError::request(
                ErrorKind::Internal,
                format!("cannot start processes here: {error}; is `/proc` there?"),
            )
        })?;
        let driver = driver_setup(&config, &folder, spawner.clone()).start(Spares::None);
        let agent = AgentName::new(config.profile.name.as_str());
        let admission =
            AdmissionLimits { running: config.terms.concurrency, waiting: WAITING, ..AdmissionLimits::default() };
        let setup = AgentSetup {
            driver: Arc::<dyn ManagedDriver>::clone(&driver),
            limits: limits(&config),
            policy: match config.terms.permissions {
                Permissions::Auto | Permissions::Ask(_) => PermissionPolicy::ask(),
                Permissions::Deny => PermissionPolicy::reject(),
            },
            admission: Admission::new(admission),
        };
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let agents = HashMap::from([(agent.clone(), setup)]);
        let sessions = Sessions::new(Arc::clone(&store), agents, SessionsConfig { live: SESSIONS });
        let sessions = sessions.with_tool_host(Arc::new(SettlingToolHost(bridge.clone())));
        let sessions = Arc::new(sessions.with_tool_servers(config.terms.tool_servers.clone()));
        let catalog = CatalogConfig {
            default_agent: agent.clone(),
            mapped: std::collections::BTreeMap::new(),
            unknown: UnknownModels::Refuse,
            unlisted: Unlisted::default(),
        };
        let catalog = Arc::new(Catalog::new(&sessions, catalog));
        let exchanges = Exchanges::new(Arc::clone(&sessions), catalog, ExchangeConfig::default());
        let (tasks, runtime, openings) = (TaskTracker::new(), Handle::current(), Semaphore::new(OPENINGS));
        Ok(Self {
            config,
            agent,
            store,
            sessions,
            exchanges,
            driver,
            bridge,
            spawner,
            openings,
            tasks,
            runtime,
            folder,
        })
    }

    /// What the agent takes in a prompt, as it said at its start.
    pub(crate) fn abilities(&self) -> PromptAbilities {
        self.driver.facts().map(|facts| facts.prompt).unwrap_or_default()
    }

    pub(crate) fn processes(&self) -> usize {
        self.driver.processes().len()
    }

    /// Ends everything, and resolves when nothing is left.
    pub(crate) async fn shut_down(&self) {
        self.sessions.shutdown().await;
        self.exchanges.settle().await;
        self.tasks.close();
        self.tasks.wait().await;
        self.bridge.shutdown().await;
        self.spawner.shut_down().await;
    }
}

impl Drop for Engine {
    /// Whoever did not close it is not made to wait. Without the runtime the guards end what is left.
    fn drop(&mut self) {
        let (sessions, bridge, spawner) = (Arc::clone(&self.sessions), self.bridge.clone(), self.spawner.clone());
        let folder = Arc::clone(&self.folder);
        self.runtime.spawn(async move {
            sessions.shutdown().await;
            bridge.shutdown().await;
            spawner.shut_down().await;
            drop(folder);
        });
    }
}

async fn start_bridge(profile: &Profile) -> Result<ToolBridge, EvaluateError> {
    let mut config = Config { aliases: vec![profile.mcp.server_name.as_str().into()], ..Config::default() };
    if let Some(limit) = profile.mcp.name_limit {
        config.name_limit = config.name_limit.min(limit);
    }
    listening(ToolBridge::start(config)).await
}

/// The tool server once it listens, or why it does not.
async fn listening(start: impl Future<Output = Result<ToolBridge, StartError>>) -> Result<ToolBridge, EvaluateError> {
    let failed = |message: String| EvaluateError::request(ErrorKind::Internal, message);
    match tokio::time::timeout(BRIDGE_START, start).await {
        Ok(started) => started.map_err(|error| failed(error.to_string())),
        Err(_) => Err(failed(format!("the tool server did not listen within {} s", BRIDGE_START.as_secs()))),
    }
}

fn limits(config: &EngineConfig) -> Limits {
    let turn = config.terms.turn_timeout;
    Limits {
        idle: turn,
        turn,
        answer: turn,
        // A session lives as long as the caller has it.
        keep: Duration::from_hours(24 * 365),
        quiet: config.quiet,
        cancel_grace: config.cancel_grace,
        ..setup::limits(&config.profile)
    }
}

fn driver_setup(config: &EngineConfig, folder: &PrivateDir, spawner: Spawner) -> DriverSetup {
    let host = Host {
        environment: config.environment.clone(),
        private: folder.path().join("runs"),
        cache: cache(&config.environment).unwrap_or_else(|| folder.path().join("cache")),
        homes: folder.path().join("homes"),
        line: gembridge_process::DEFAULT_LINE_LIMIT,
        umask: umask(),
        spawner,
        shim: Some(config.helper.path.clone()),
        guest_fence: GuestFence::Absent(NoFence::TurnedOff),
        guest_nice: 0,
    };
    // Sessions without a workspace have a folder each; their process begins in one of its own.
    let workspace = config.workspace.clone().unwrap_or_else(|| folder.path().to_owned());
    let mut setup = DriverSetup::new(config.profile.clone(), config.program.clone(), Some(workspace), &host);
    // The driver counts whole seconds, for each of its calls: it must not be sooner than the time that holds for all of them.
    setup.profile.limits.start_seconds = config.startup.as_secs() + 1;
    setup.model.clone_from(&config.terms.model);
    setup.trust = config.trust;
    setup.home = Home::OfTheProcess;
    setup.waiting = SESSIONS;
    setup.access = config.access;
    // A library uses its caller's login in its caller's home.
    if let Some(login) = setup.login.as_mut().filter(|_| config.home == AgentHome::OfTheCaller) {
        login.private_home = false;
    }
    setup
}

/// Where agents keep what may vanish at any time, such as compiled code.
fn cache(environment: &Environment) -> Option<PathBuf> {
    let set = |name: &str| environment.get(name).filter(|value| value.starts_with('/')).map(PathBuf::from);
    Some(set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?.join("gembridge"))
}

/// What this process's files leave to others, as the system tells it.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022)
}

/// A folder of this adapter's own, below one of this user's. What killed programs left there is removed.
fn private_folder(config: &EngineConfig) -> std::io::Result<PrivateDir> {
    let user = std::fs::metadata("/proc/self")?.uid();
    let root = std::env::temp_dir().join(format!("gembridge-sdk-{user}"));
    let folder = PrivateDir::create(&root, &config.profile.name)?;
    if !is_ours(&root, user)? {
        let message = format!("`{}` belongs to somebody else; remove it or set `TMPDIR`", root.display());
        return Err(std::io::Error::other(message));
    }
    sweep_private_dirs(&root)?;
    Ok(folder)
}

fn is_ours(root: &Path, user: u32) -> std::io::Result<bool> {
    let metadata = std::fs::symlink_metadata(root)?;
    Ok(metadata.is_dir() && metadata.uid() == user && metadata.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use crate::error::Phase;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_tool_server_that_does_not_listen_is_given_up_after_five_seconds() {
        let began = tokio::time::Instant::now();
        let error = listening(std::future::pending()).await.err().unwrap();
        assert_eq!(began.elapsed(), Duration::from_secs(5));
        assert_eq!((error.phase, error.kind), (Phase::Request, ErrorKind::Internal));
        assert_eq!(error.message, "the tool server did not listen within 5 s");
    }

    #[tokio::test]
    async fn why_a_tool_server_cannot_listen_is_passed_on() {
        let taken = std::io::Error::new(std::io::ErrorKind::AddrInUse, "no port is free");
        let error = listening(async { Err(StartError::from(taken)) }).await.err().unwrap();
        assert!(error.message.contains("no port is free"), "{error}");
    }
}
