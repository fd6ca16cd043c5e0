//! Sessions with one scripted agent on one store.

use std::collections::HashMap;
use std::sync::Arc;

use gembridge_core::driver::{Driver, SlashCommands};
use gembridge_core::limit::Limits;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{AgentName, ClientId, Principal, Prompt, SessionId, TurnId};
use gembridge_core::session::{Accepted, AgentSetup, NewSession, SessionHandle, Sessions, SessionsConfig, Viewer};
use gembridge_core::turn::PermissionPolicy;

use super::agent::{AgentDesk, ScriptedDriver, scripted_driver};
use super::store::MemoryStore;

pub const CLIENT: ClientId = ClientId(1);

pub struct World {
    pub sessions: Arc<Sessions>,
    pub store: MemoryStore,
    pub desk: AgentDesk,
    pub driver: Arc<ScriptedDriver>,
}

impl World {
    pub fn new() -> Self {
        Self::with(Limits::default())
    }

    pub fn with(limits: Limits) -> Self {
        Self::on(MemoryStore::default(), limits, SessionsConfig::default())
    }

    /// The world after a restart: the same store, everything else anew.
    pub fn on(store: MemoryStore, limits: Limits, config: SessionsConfig) -> Self {
        let (driver, desk) = scripted_driver();
        let setup =
            AgentSetup { driver: Arc::clone(&driver) as Arc<dyn Driver>, limits, policy: PermissionPolicy::ask() };
        let agents = HashMap::from([(agent_name(), setup)]);
        let sessions = Arc::new(Sessions::new(Arc::new(store.clone()), agents, config));
        Self { sessions, store, desk, driver }
    }

    pub async fn session(&self) -> SessionHandle {
        self.sessions.create(new_session("ann")).await.expect("a session can be made")
    }

    pub async fn get(&self, id: SessionId) -> SessionHandle {
        self.sessions.get(id, &Viewer::Admin).await.expect("the session is there")
    }

    pub fn entries(&self, handle: &SessionHandle) -> Vec<LogEntry> {
        self.store.entries(handle.id())
    }
}

pub fn agent_name() -> AgentName {
    AgentName::new("scripted")
}

pub fn new_session(principal: &str) -> NewSession {
    NewSession {
        principal: Principal::new(principal),
        agent: agent_name(),
        workspace: None,
        model: None,
        mode: None,
        tool_servers: Vec::new(),
        slash: SlashCommands::AsText,
    }
}

/// Sends a prompt that must be taken.
pub async fn prompt(handle: &SessionHandle, text: &str) -> TurnId {
    accepted(handle, text).await.turn
}

pub async fn accepted(handle: &SessionHandle, text: &str) -> Accepted {
    handle.prompt(Prompt::text(text), CLIENT).await.expect("the prompt is taken")
}
