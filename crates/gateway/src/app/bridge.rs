//! One agent, one store and one session, as `run` and `chat` need them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use gembridge_core::admission::Admission;
use gembridge_core::driver::SlashCommands;
use gembridge_core::error::Error;
use gembridge_core::model::{AgentName, Principal, SessionId};
use gembridge_core::session::{AgentSetup, NewSession, SessionHandle, Sessions, SessionsConfig, Viewer};
use gembridge_core::store::MemoryStore;
use gembridge_core::store::{Logs, SessionRecord, Store, StoreError};
use gembridge_core::turn::PermissionPolicy;
use gembridge_drivers::profile::Execution;
use gembridge_drivers::setup::{DriverSetup, HARMLESS, Spares};
use gembridge_process::{GuardProgram, Spawner};
use gembridge_store::DiskStore;

use super::import::Import;
use crate::agents::{self, Agent, Chosen, setup};
use crate::command::Context;
use crate::command::run::{Permissions, SessionRequest};
use crate::config::folders::ensure_private;
use crate::exit::{CommandError, ExitCode};
use crate::stale_cleanup;

/// Everything that was started for a command. [`Bridge::close`] ends all of it.
pub struct Bridge {
    pub agent: Agent,
    pub session: SessionHandle,
    pub workspace: Option<PathBuf>,
    sessions: Sessions,
    spawner: Spawner,
}

impl Bridge {
    /// Where the session's older entries are.
    pub fn logs(&self) -> Arc<dyn Logs> {
        self.sessions.logs()
    }

    /// Starts nothing of the agent yet: the first prompt does.
    pub async fn open(request: &SessionRequest, context: &Context) -> Result<Self, CommandError> {
        let folders = &context.config.folders;
        for folder in [&folders.state, &folders.cache] {
            ensure_private(folder)?;
        }
        let cleared = stale_cleanup::clear(folders);
        if cleared != stale_cleanup::Cleared::default() {
            tracing::info!(?cleared, "cleared what killed runs had left");
        }
        let store = store(request, context)?;
        let earlier = match (request.resume, &request.import) {
            (Some(id), _) => Some(store.record(id).await.map_err(|error| unknown(id, error))?),
            (None, Some(import)) => Some(imported(import, request, store.as_ref()).await?),
            (None, None) => None,
        };
        let agent = agent(request, earlier.as_ref(), context)?;
        if let Chosen::BuiltIn(lacking) = &agent.chosen {
            tracing::warn!("{}, so the built-in demo agent answers; {}", lacking.problem(), lacking.way_out());
        }
        let workspace = workspace(request, earlier.as_ref(), &agent);
        let spawner = Spawner::new(GuardProgram::this_binary()).context("cannot prepare to start the agent")?;
        let mut setup = DriverSetup {
            model: request.model.as_deref().map(str::to_owned),
            ..setup::of(&agent, workspace.clone(), context, spawner.clone())
        };
        // The agent looks for its own session where it wrote it: in the operator's home.
        if let (Some(login), true) = (&mut setup.login, request.is_loaded_by_its_writer()) {
            login.private_home = false;
        }
        let name = AgentName::new(agent.profile.name.as_str());
        let driver = setup.start(Spares::None);
        let policy = match request.permissions {
            // Whoever runs the command answers, by hand or by their flag.
            Permissions::Ask | Permissions::Allow => PermissionPolicy::ask(),
            Permissions::AllowHarmless => PermissionPolicy::ask().with_auto(HARMLESS),
            Permissions::Deny => PermissionPolicy::reject(),
        };
        let limits = setup::limits(&context.config.settings, &agent);
        let agents =
            HashMap::from([(name.clone(), AgentSetup { driver, limits, policy, admission: Admission::default() })]);
        let sessions = Sessions::new(store, agents, SessionsConfig::default());
        let session = match earlier {
            Some(record) => sessions.get(record.id, &Viewer::Admin).await,
            None => sessions.create(new_session(name, workspace.clone(), request)).await,
        };
        let session = session.map_err(core_error)?;
        Ok(Self { agent, session, workspace, sessions, spawner })
    }

    /// Ends the session and the agent, and waits until every process of it is gone.
    pub async fn close(self) {
        self.sessions.shutdown().await;
        self.spawner.shut_down().await;
    }
}

/// What the core says, with the exit code that it means.
pub fn core_error(error: Error) -> CommandError {
    match error {
        Error::Agent(failure) => failure.into(),
        Error::Invalid(_) | Error::UnknownSession(_) => CommandError::new(ExitCode::Usage, error.to_string()),
        Error::NotAsked
        | Error::NotParked(_)
        | Error::MovedOn
        | Error::Elsewhere(_)
        | Error::Directory(_)
        | Error::Busy { .. }
        | Error::QueueFull(_)
        | Error::Closed
        | Error::Store(_) => CommandError::new(ExitCode::Failed, error.to_string()),
    }
}

/// The sessions on disk; while another process has them, this one keeps its session to itself.
fn store(request: &SessionRequest, context: &Context) -> Result<Arc<dyn Store>, CommandError> {
    let folder = context.config.folders.sessions();
    match DiskStore::open(&folder) {
        Ok(store) => Ok(Arc::new(store)),
        Err(error @ StoreError::InUse(_)) if request.resume.is_none() => {
            tracing::info!(%error, "this session is not kept");
            Ok(Arc::new(MemoryStore::new()))
        }
        // A disk that is full or broken is no reason to answer and forget.
        Err(error) => Err(CommandError::new(ExitCode::Failed, error.to_string())),
    }
}

async fn imported(import: &Import, request: &SessionRequest, store: &dyn Store) -> Result<SessionRecord, CommandError> {
    let stored = import.store(&request.agent.profile.name, Principal::new("operator"), store).await;
    stored.map_err(|error| CommandError::new(ExitCode::Failed, error.to_string()))
}

fn unknown(id: SessionId, error: StoreError) -> CommandError {
    match error {
        StoreError::Unknown(_) => {
            CommandError::usage(format!("session `{id}` is not known; leave `--resume` out to begin one"))
        }
        other => CommandError::new(ExitCode::Failed, other.to_string()),
    }
}

/// A session goes on with its own agent.
fn agent(request: &SessionRequest, earlier: Option<&SessionRecord>, context: &Context) -> Result<Agent, CommandError> {
    match earlier {
        Some(record) if record.agent.as_str() != request.agent.profile.name => {
            agents::named(record.agent.as_str(), &context.profiles, &context.config)
        }
        _ => Ok(request.agent.clone()),
    }
}

fn workspace(request: &SessionRequest, earlier: Option<&SessionRecord>, agent: &Agent) -> Option<PathBuf> {
    let of_profile = || match agent.profile.chosen.execution {
        Execution::Agent => agent.profile.chosen.workspace.clone(),
        Execution::Chat => None,
    };
    match earlier {
        Some(record) => record.workspace.clone(),
        None => request.workspace.clone().or_else(of_profile),
    }
}

fn new_session(agent: AgentName, workspace: Option<PathBuf>, request: &SessionRequest) -> NewSession {
    NewSession {
        // Whoever may start this program may read its files: there is nobody to tell apart.
        principal: Principal::new("operator"),
        agent,
        workspace,
        model: request.model.clone(),
        mode: request.mode.clone(),
        tool_servers: Vec::new(),
        slash: match request.author {
            crate::command::run::Author::Person => SlashCommands::Run,
            crate::command::run::Author::Pipe => SlashCommands::AsText,
        },
    }
}
