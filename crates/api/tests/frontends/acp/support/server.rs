//! The face behind the real guard, on the real server.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gembridge_api::acp::{self, Acp, AcpConfig, AcpParts, AgentCard, Execution, Tap, Tapped, TrustedFolders};
use gembridge_api::frontend::Frontend;
use gembridge_api::guard::body::BodyLimits;
use gembridge_api::guard::{Guard, GuardConfig};
use gembridge_api::identity::{Identity, Rank};
use gembridge_api::keys::{Digest, Key, KeyTable};
use gembridge_api::routes::app;
use gembridge_api::server::{Deadlines, Drained, Server, ServerConfig, Stop};
use gembridge_core::admission::{Admission, AdmissionLimits};
use gembridge_core::driver::Driver;
use gembridge_core::exchange::{Catalog, CatalogConfig, UnknownModels, Unlisted};
use gembridge_core::limit::Limits;
use gembridge_core::model::{AgentName, ClientId, Principal, Prompt};
use gembridge_core::session::{AgentSetup, NewSession, SessionHandle, Sessions, SessionsConfig};
use gembridge_core::store::MemoryStore;
use gembridge_core::turn::PermissionPolicy;
use tokio::task::JoinSet;

use super::agents::ScriptedAgents;
use super::client::{Client, soon};

pub const ADMIN: &str = "gb-admin";
pub const ANN: &str = "gb-ann";
pub const BOB: &str = "gb-bob";

pub struct TestServer {
    pub address: SocketAddr,
    pub sessions: Arc<Sessions>,
    pub face: Arc<Acp>,
    pub keys: Arc<KeyTable>,
    pub tapped: Arc<Tapes>,
    pub stop: Stop,
    running: JoinSet<Drained>,
}

pub struct ServerSetup {
    pub config: AcpConfig,
    pub limits: Limits,
    pub policy: PermissionPolicy,
    pub execution: Execution,
    pub turns: usize,
    pub bodies: BodyLimits,
    /// How long a client may take nothing of what it is sent.
    pub send: Duration,
}

impl Default for ServerSetup {
    fn default() -> Self {
        Self {
            config: AcpConfig::default(),
            limits: Limits::default(),
            policy: PermissionPolicy::ask(),
            execution: Execution::Chat,
            turns: 64,
            bodies: BodyLimits::default(),
            send: Deadlines::default().send,
        }
    }
}

/// Trusts one folder by its name.
struct OneFolder;

impl TrustedFolders for OneFolder {
    fn trusted(&self, folder: &Path) -> Option<PathBuf> {
        (folder == Path::new("/trusted")).then(|| folder.to_owned())
    }
}

/// A message with this in it makes the tap panic, and so the connection that it came on.
pub const PANIC: &str = "$/panic";

/// What the tap saw: the kind, the session, the message.
#[derive(Default)]
pub struct Tapes(pub Mutex<Vec<(String, Option<String>, String)>>);

impl Tap for Tapes {
    fn message(&self, tapped: &Tapped<'_>) {
        assert!(!tapped.message.contains(PANIC), "a panic that the test asked for");
        let (kind, session) = (tapped.direction.as_str().to_owned(), tapped.session.map(str::to_owned));
        self.0.lock().unwrap().push((kind, session, tapped.message.to_owned()));
    }
}

pub fn digest(key: &str) -> Digest {
    Key::given(key).digest()
}

impl TestServer {
    pub fn new(agents: &Arc<ScriptedAgents>) -> Self {
        Self::with(agents, ServerSetup::default())
    }

    pub fn with(agents: &Arc<ScriptedAgents>, setting: ServerSetup) -> Self {
        let name = AgentName::new("played");
        let setup = AgentSetup {
            driver: Arc::clone(agents) as Arc<dyn Driver>,
            limits: setting.limits,
            policy: setting.policy.clone(),
            admission: Admission::new(AdmissionLimits { running: setting.turns, ..AdmissionLimits::default() }),
        };
        let agents = HashMap::from([(name.clone(), setup)]);
        let sessions = Arc::new(Sessions::new(Arc::new(MemoryStore::new()), agents, SessionsConfig::default()));
        let catalog = CatalogConfig {
            default_agent: name.clone(),
            mapped: std::collections::BTreeMap::new(),
            unknown: UnknownModels::Refuse,
            unlisted: Unlisted::default(),
        };
        let catalog = Arc::new(Catalog::new(&sessions, catalog));
        Self::over(sessions, catalog, name, setting)
    }

    /// The API over sessions that are there, with this agent.
    pub fn over(sessions: Arc<Sessions>, catalog: Arc<Catalog>, agent: AgentName, setting: ServerSetup) -> Self {
        let tapped = Arc::new(Tapes::default());
        let workspace = (setting.execution == Execution::Agent).then(|| PathBuf::from("/workspace"));
        let face = Acp::new(AcpParts {
            sessions: Arc::clone(&sessions),
            catalog,
            agents: vec![AgentCard {
                name: agent,
                title: "Played".into(),
                execution: setting.execution,
                workspace,
                is_demo: false,
            }],
            folders: Arc::new(OneFolder),
            tap: Some(Arc::<Tapes>::clone(&tapped) as Arc<dyn Tap>),
            version: "0.0.0",
            config: setting.config,
        });
        let who = |name: &str, rank| Identity { principal: Principal::new(name), rank };
        let keys = Arc::new(KeyTable::new(vec![
            (digest(ADMIN), who("admin", Rank::Admin)),
            (digest(ANN), who("ann", Rank::User)),
            (digest(BOB), who("bob", Rank::User)),
        ]));
        let guard =
            Guard::new(GuardConfig { rate: None, bodies: setting.bodies, ..GuardConfig::default() }, keys.clone());
        let websocket = acp::router(&face).merge(acp::root_router(&face));
        let app = app(&guard, [Frontend { small: acp::tickets(&guard), websocket, ..Frontend::default() }]);
        let mut config = ServerConfig::new(vec![SocketAddr::from(([127, 0, 0, 1], 0))]);
        config.deadlines.send = setting.send;
        let server = Server::bind(config).unwrap();
        let address = server.local_addrs().unwrap()[0];
        let stop = Stop::default();
        let mut running = JoinSet::new();
        running.spawn(server.serve(app, stop.clone()));
        Self { address, sessions, face, keys, tapped, stop, running }
    }

    /// A client with this key that has not said anything.
    pub async fn connect_as(&self, key: &str, path: &str) -> Client {
        let bearer = format!("Bearer {key}");
        Client::open(self.address, path, &[("authorization", &bearer)]).await.expect("it is let in")
    }

    pub async fn connect(&self, path: &str) -> Client {
        self.connect_as(ANN, path).await
    }

    /// A client of Ann's that is known.
    pub async fn client(&self) -> Client {
        let mut client = self.connect("/acp").await;
        client.initialize().await;
        client
    }

    /// A client of Ann's that is attached to a session, from where its address says.
    pub async fn attached(&self, session: &str, query: &str) -> Client {
        let mut client = self.connect(&format!("/acp?session={session}{query}")).await;
        client.initialize().await;
        client
    }

    /// A session of another face.
    pub async fn foreign_session(&self, principal: &str) -> SessionHandle {
        let new = NewSession {
            principal: Principal::new(principal),
            agent: AgentName::new("played"),
            workspace: None,
            model: None,
            mode: None,
            tool_servers: Vec::new(),
            slash: gembridge_core::driver::SlashCommands::AsText,
        };
        self.sessions.create(new).await.unwrap()
    }

    /// A prompt of another face.
    pub async fn prompt(&self, handle: &SessionHandle, text: &str) {
        handle.prompt(Prompt::text(text), ClientId::fresh()).await.unwrap();
    }

    /// How serving ended.
    pub async fn ended(&mut self) -> Drained {
        soon(self.running.join_next()).await.unwrap().unwrap()
    }
}
