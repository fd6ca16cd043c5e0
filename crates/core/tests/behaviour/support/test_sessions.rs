//! Sessions with one scripted agent on one store.

use std::collections::HashMap;
use std::sync::Arc;

use gembridge_core::admission::{Admission, AdmissionLimits};
use gembridge_core::driver::{Driver, SlashCommands};
use gembridge_core::error::Error;
use gembridge_core::limit::Limits;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{AgentName, CallId, ClientId, Principal, Prompt, SessionId, TurnId};
use gembridge_core::session::{
    Accepted, AgentSetup, NewSession, Precondition, Resumed, SessionHandle, Sessions, SessionsConfig, Submission,
    SubmitResults, Unanswered, Viewer,
};
use gembridge_core::tool_host::Offer;
use gembridge_core::turn::PermissionPolicy;

use super::store::FaultyStore;
use super::tools::{FakePlace, ToolDesk, offer, result, scripted_host};
use gembridge_core::test_support::{AgentDesk, DeskDriver, FakeAgent, desk_driver};

pub const CLIENT: ClientId = ClientId(1);

pub struct TestSessions {
    pub sessions: Arc<Sessions>,
    pub store: FaultyStore,
    pub desk: AgentDesk,
    pub driver: Arc<DeskDriver>,
    pub tools: ToolDesk,
}

impl TestSessions {
    pub fn new() -> Self {
        Self::with(Limits::default())
    }

    pub fn with(limits: Limits) -> Self {
        Self::on(FaultyStore::default(), limits, SessionsConfig::default())
    }

    /// The test after a restart: the same store, everything else anew.
    pub fn on(store: FaultyStore, limits: Limits, config: SessionsConfig) -> Self {
        Self::admitting(store, limits, config, AdmissionLimits::default())
    }

    /// A test whose agent runs so many turns at once.
    pub fn running(running: usize, waiting: usize) -> Self {
        let admission = AdmissionLimits { running, waiting, ..AdmissionLimits::default() };
        Self::admitting(FaultyStore::default(), Limits::default(), SessionsConfig::default(), admission)
    }

    fn admitting(store: FaultyStore, limits: Limits, config: SessionsConfig, admission: AdmissionLimits) -> Self {
        let (driver, desk) = desk_driver();
        let setup = AgentSetup {
            driver: Arc::clone(&driver) as Arc<dyn Driver>,
            limits,
            policy: PermissionPolicy::ask(),
            admission: Admission::new(admission),
        };
        let agents = HashMap::from([(agent_name(), setup)]);
        let (host, tools) = scripted_host();
        let sessions = Sessions::new(Arc::new(store.clone()), agents, config).with_tool_host(host);
        Self { sessions: Arc::new(sessions), store, desk, driver, tools }
    }

    pub async fn session(&self) -> SessionHandle {
        self.sessions.create(new_session("ann")).await.expect("a session can be made")
    }

    /// A turn that runs with these tools, the agent that plays it, and the place where it calls them.
    pub async fn with_tools(&mut self, names: &[&str]) -> (SessionHandle, FakeAgent, FakePlace) {
        let session = self.session().await;
        submit(&session, "go", Some(offer(names))).await.expect("the prompt is taken");
        let mut agent = self.desk.open("a").await;
        let mut place = self.tools.next().await;
        place.reads().await;
        agent.expect_prompt("go").await;
        (session, agent, place)
    }

    pub async fn get(&self, id: SessionId) -> SessionHandle {
        self.sessions.get(id, &Viewer::Admin).await.expect("the session is there")
    }

    pub fn admission(&self) -> &Admission {
        let (_, setup) = self.sessions.agents().next().expect("there is one agent");
        &setup.admission
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

pub async fn submit(handle: &SessionHandle, text: &str, offer: Option<Offer>) -> Result<Accepted, Error> {
    let submission = Submission { prompt: Prompt::text(text), by: CLIENT, precondition: Precondition::Any, offer };
    handle.submit(submission).await
}

/// Gives these results, and leaves the other calls waiting.
pub async fn give(handle: &SessionHandle, results: &[(CallId, &str)]) -> Result<Resumed, Error> {
    let results = results.iter().map(|(call, text)| (*call, result(text))).collect();
    handle.submit_results(SubmitResults { results, unanswered: Unanswered::Wait, by: CLIENT }).await
}

/// Sends a prompt that must be taken.
pub async fn prompt(handle: &SessionHandle, text: &str) -> TurnId {
    accepted(handle, text).await.turn
}

pub async fn accepted(handle: &SessionHandle, text: &str) -> Accepted {
    handle.prompt(Prompt::text(text), CLIENT).await.expect("the prompt is taken")
}
