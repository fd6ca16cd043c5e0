//! What is behind every API: sessions of one agent.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use gembridge_core::admission::{Admission, AdmissionLimits};
use gembridge_core::driver::Driver;
use gembridge_core::exchange::{Catalog, CatalogConfig, ExchangeConfig, Exchanges, UnknownModels, Unlisted};
use gembridge_core::limit::Limits;
use gembridge_core::model::AgentName;
use gembridge_core::session::{AgentSetup, Sessions, SessionsConfig};
use gembridge_core::store::MemoryStore;
use gembridge_core::test_support::ScriptedAgents;
use gembridge_core::turn::PermissionPolicy;

use crate::openai::support::tools::FakeTools;

pub const AGENT: &str = "played";

pub struct Gateway {
    pub sessions: Arc<Sessions>,
    pub catalog: Arc<Catalog>,
    pub exchanges: Arc<Exchanges>,
}

pub struct Setup {
    pub store: MemoryStore,
    pub tools: Arc<FakeTools>,
    pub admission: AdmissionLimits,
    pub limits: Limits,
}

impl Default for Setup {
    fn default() -> Self {
        let limits = Limits { answer_alone: Duration::from_millis(10), ..Limits::default() };
        Self { store: MemoryStore::new(), tools: FakeTools::new(), admission: AdmissionLimits::default(), limits }
    }
}

impl Gateway {
    pub fn new(agents: &Arc<ScriptedAgents>) -> Self {
        Self::with(agents, Setup::default())
    }

    pub fn with_tools(agents: &Arc<ScriptedAgents>, tools: &Arc<FakeTools>) -> Self {
        Self::with(agents, Setup { tools: Arc::clone(tools), ..Setup::default() })
    }

    /// The same for agents that call several at once: they have all the time that a busy machine needs.
    pub fn with_calls_at_once(agents: &Arc<ScriptedAgents>, tools: &Arc<FakeTools>) -> Self {
        let mut setup = Setup { tools: Arc::clone(tools), ..Setup::default() };
        setup.limits.gather = Duration::from_secs(3);
        Self::with(agents, setup)
    }

    pub fn with(agents: &Arc<ScriptedAgents>, setup: Setup) -> Self {
        let agent = AgentName::new(AGENT);
        let of_agent = AgentSetup {
            driver: Arc::clone(agents) as Arc<dyn Driver>,
            limits: setup.limits,
            policy: PermissionPolicy::ask(),
            admission: Admission::new(setup.admission),
        };
        let of_agents = HashMap::from([(agent.clone(), of_agent)]);
        let sessions = Sessions::new(Arc::new(setup.store), of_agents, SessionsConfig::default());
        let sessions = Arc::new(sessions.with_tool_host(setup.tools));
        let config = CatalogConfig {
            default_agent: agent,
            mapped: BTreeMap::new(),
            unknown: UnknownModels::FallBack,
            unlisted: Unlisted::default(),
        };
        let catalog = Arc::new(Catalog::new(&sessions, config));
        let exchanges = Exchanges::new(Arc::clone(&sessions), Arc::clone(&catalog), ExchangeConfig::default());
        Self { sessions, catalog, exchanges }
    }
}
