//! Sessions, driver and store, joined as the gateway joins them: default limits, the log written to disk.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use gembridge_core::admission::Admission;
use gembridge_core::driver::SlashCommands;
use gembridge_core::limit::Limits;
use gembridge_core::model::{AgentName, Principal};
use gembridge_core::session::{AgentSetup, NewSession, SessionHandle, Sessions, SessionsConfig};
use gembridge_core::turn::PermissionPolicy;
use gembridge_drivers::profile::{ApprovalMode, Environment, Execution, Profile, Sandbox, Trust};
use gembridge_drivers::setup::{Audience, ClientAccess, DriverSetup, Forms, GuestFence, Home, ManagedDriver, Spares};
use gembridge_process::{GuardProgram, RestartPolicy, Spawner};
use gembridge_store::DiskStore;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// Nothing that is measured takes this long on a healthy machine.
pub const PATIENCE: Duration = Duration::from_mins(2);

pub struct House {
    pub driver: Arc<dyn ManagedDriver>,
    sessions: Sessions,
    agent: AgentName,
    spawner: Spawner,
    _folder: TempDir,
}

/// A profile that ships in the binary.
pub fn profile(name: &str) -> anyhow::Result<Profile> {
    let profiles = Profile::builtin()?;
    profiles.into_iter().find(|profile| profile.name == name).with_context(|| format!("no profile `{name}`"))
}

/// The demo agent, which is this binary, with more arguments.
pub fn demo(args: &[&str]) -> anyhow::Result<(Profile, PathBuf)> {
    let mut profile = profile("demo")?;
    profile.command.args.extend(args.iter().map(|arg| (*arg).to_owned()));
    Ok((profile, std::env::current_exe()?))
}

/// What a driver needs to start `program`, all folders in `folder`.
pub fn setup(
    profile: Profile,
    program: PathBuf,
    mut environment: Environment,
    folder: &TempDir,
    spawner: Spawner,
) -> anyhow::Result<DriverSetup> {
    environment.insert("PATH".to_owned(), environment.get("PATH").cloned().map_or_else(search_path, Ok)?);
    Ok(DriverSetup {
        audience: Audience::Operators,
        guest_fence: GuestFence::Landlock,
        guest_nice: 0,
        login: profile.find_login(&environment, &|path| path.exists()),
        profile,
        program,
        version: None,
        execution: Execution::Chat,
        workspace: None,
        trust: Trust::Trusted,
        environment,
        model: None,
        approval: ApprovalMode::Default,
        sandbox: Sandbox::Off,
        home: Home::OfTheProcess,
        umask: 0o022,
        private: folder.path().join("runs"),
        cache: folder.path().join("cache"),
        spawner,
        shim: None,
        forms: Forms::NotOffered,
        access: ClientAccess::ALL,
        restart: RestartPolicy::default(),
        line: gembridge_process::DEFAULT_LINE_LIMIT,
        waiting: 64,
    })
}

pub fn spawner() -> anyhow::Result<Spawner> {
    Spawner::new(GuardProgram::this_binary()).context("cannot start processes here; is `/proc` mounted?")
}

/// The `PATH` of whoever runs the benchmark: agents need it to find their interpreters.
pub fn search_path() -> anyhow::Result<String> {
    std::env::var("PATH").context("`PATH` is not set")
}

impl House {
    pub fn open(profile: Profile, program: PathBuf, environment: Environment) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let spawner = spawner()?;
        let limits = Limits {
            quiet: Duration::from_millis(profile.limits.quiet_ms),
            cancel_grace: Duration::from_millis(profile.limits.cancel_grace_ms),
            ..Limits::default()
        };
        let agent = AgentName::new(profile.name.as_str());
        let setup = setup(profile, program, environment, &folder, spawner.clone())?;
        let driver = setup.start(Spares::OfTheProfile);
        let store = Arc::new(DiskStore::open(folder.path().join("sessions"))?);
        let configured = AgentSetup {
            driver: driver.clone(),
            limits,
            policy: PermissionPolicy::reject(),
            admission: Admission::default(),
        };
        let sessions = Sessions::new(store, HashMap::from([(agent.clone(), configured)]), SessionsConfig::default());
        Ok(Self { driver, sessions, agent, spawner, _folder: folder })
    }

    pub async fn create(&self) -> anyhow::Result<SessionHandle> {
        let new = NewSession {
            principal: Principal::new("operator"),
            agent: self.agent.clone(),
            workspace: None,
            model: None,
            mode: None,
            tool_servers: Vec::new(),
            slash: SlashCommands::AsText,
        };
        Ok(self.sessions.create(new).await?)
    }

    /// Waits until a spare stands ready.
    pub async fn warm(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.driver.pools()[0].spares == 0 {
            anyhow::ensure!(Instant::now() < deadline, "no spare within {PATIENCE:?}: {:?}", self.driver.pools()[0]);
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// The main process of the agent that serves the sessions. There must be one, and only one.
    pub fn agent_pid(&self) -> anyhow::Result<u32> {
        let living = self.driver.processes();
        let [process] = living.as_slice() else { anyhow::bail!("one process should serve all sessions: {living:?}") };
        process.pid.context("the agent's process has no number")
    }

    /// Ends everything and waits until it is gone.
    pub async fn close(self) {
        self.sessions.shutdown().await;
        self.spawner.shut_down().await;
    }
}
