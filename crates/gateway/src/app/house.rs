//! Everything that one session of the command line needs, built before the session and taken down after it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gembridge_core::driver::SlashCommands;
use gembridge_core::limit::Limits;
use gembridge_core::model::{AgentName, Principal, SessionId};
use gembridge_core::session::{AgentSetup, NewSession, SessionHandle, Sessions, SessionsConfig, Viewer};
use gembridge_core::store::{Store, StoreError};
use gembridge_core::turn::PermissionPolicy;
use gembridge_drivers::acp::{AcpDriver, Home, Spares};
use gembridge_drivers::profile::Execution;
use gembridge_drivers::workspace::sweep_private_dirs;
use gembridge_process::{GuardProgram, Spawner};
use gembridge_store::{DiskStore, MemoryStore};

use super::agent;
use crate::agents::Agent;
use crate::command::Context;
use crate::command::run::SessionRequest;
use crate::config::folders::ensure_private;
use crate::config::settings::Policy;
use crate::exit::{CommandError, ExitCode};

pub struct House {
    pub sessions: Sessions,
    pub agent: AgentName,
    /// What the person should know before anything happens.
    pub notice: Option<String>,
    spawner: Spawner,
}

impl House {
    pub fn build(request: &SessionRequest, context: &Context) -> Result<Self, CommandError> {
        let chosen = request.agent.clone();
        let spawner = spawner()?;
        prepare(context)?;
        let (notice, limits) = (agent::notice(&chosen), limits(&chosen, context));
        let agent = AgentName::new(chosen.profile.name.as_str());
        let home = Home::Lasting(context.config.folders.state.join("homes").join(agent.as_str()));
        let setup = agent::setup(chosen, request.workspace.as_deref(), home, spawner.clone(), context);
        let policy = policy(request.policy, setup.execution);
        let driver = Arc::new(AcpDriver::new(setup, Spares::None));
        let agents = HashMap::from([(agent.clone(), AgentSetup { driver, limits, policy })]);
        let sessions = Sessions::new(store(request, context)?, agents, SessionsConfig::default());
        Ok(Self { sessions, agent, notice, spawner })
    }

    /// The session that was asked for: a new one, or the one to go on with.
    pub async fn session(&self, request: &SessionRequest) -> Result<SessionHandle, CommandError> {
        let opened = match &request.resume {
            Some(id) => {
                let id: SessionId = id.parse().map_err(|_| no_session(id))?;
                self.sessions.get(id, &Viewer::Principal(operator())).await
            }
            None => {
                let new = NewSession {
                    principal: operator(),
                    agent: self.agent.clone(),
                    workspace: request.workspace.clone(),
                    model: request.model.clone(),
                    mode: request.mode.clone(),
                    tool_servers: Vec::new(),
                    slash: SlashCommands::Run,
                };
                self.sessions.create(new).await
            }
        };
        opened.map_err(|error| error.into_failure().into())
    }

    /// Ends everything, and resolves when nothing of it is left.
    pub async fn close(self) {
        self.sessions.shutdown().await;
        self.spawner.shut_down().await;
    }
}

/// Whoever types on this machine.
fn operator() -> Principal {
    Principal::new("operator")
}

pub fn spawner() -> Result<Spawner, CommandError> {
    Spawner::new(GuardProgram::this_binary())
        .map_err(|error| anyhow::anyhow!("cannot start processes here: {error}; is `/proc` mounted?").into())
}

/// Folders that must be there, and what earlier runs left behind.
pub fn prepare(context: &Context) -> Result<(), CommandError> {
    let folders = &context.config.folders;
    ensure_private(&folders.state)?;
    ensure_private(&folders.cache)?;
    let private = folders.state.join("private");
    ensure_private(&private)?;
    match gembridge_process::sweep() {
        Ok(swept) => tracing::debug!(?swept, "looked for processes of runs that are dead"),
        Err(error) => tracing::warn!(%error, "cannot look for processes of runs that are dead"),
    }
    if let Err(error) = sweep_private_dirs(&private) {
        tracing::warn!(%error, folder = %private.display(), "leftover folders could not be removed");
    }
    Ok(())
}

/// The store on disk; one that somebody else holds is only in the way of a session that must be found again.
fn store(request: &SessionRequest, context: &Context) -> Result<Arc<dyn Store>, CommandError> {
    match open_store(&context.config.folders.state) {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) if request.resume.is_some() => Err(CommandError::new(ExitCode::Failed, error.to_string())),
        Err(error) => {
            tracing::info!(%error, "this session is kept in memory only");
            Ok(Arc::new(MemoryStore::new()))
        }
    }
}

fn open_store(state: &Path) -> Result<DiskStore, StoreError> {
    DiskStore::open(state.join("store"))
}

fn limits(agent: &Agent, context: &Context) -> Limits {
    let (settings, profile) = (&context.config.settings, &agent.profile.limits);
    Limits {
        idle: settings.turn.idle.0,
        turn: settings.turn.total.0,
        answer: settings.permissions.wait.0,
        quiet: Duration::from_millis(profile.quiet_ms),
        cancel_grace: Duration::from_millis(profile.cancel_grace_ms),
        ..Limits::default()
    }
}

/// In chat the agent has nothing to ask for. Elsewhere the person in front of the terminal is the one who answers.
fn policy(policy: Policy, execution: Execution) -> PermissionPolicy {
    match (execution, policy) {
        (Execution::Chat, _) | (Execution::Agent, Policy::Deny) => PermissionPolicy::reject(),
        (Execution::Agent, Policy::Ask | Policy::Allow) => PermissionPolicy::ask(),
    }
}

fn no_session(id: &str) -> CommandError {
    CommandError::usage(format!("`{id}` is not the id of a session; `run --output-format json` prints it"))
}
