//! The face on a port of its own.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use gembridge_api::dialect::{DialectConfig, Dialects};
use gembridge_api::frontend::Frontend;
use gembridge_api::identity::{Identity, Rank};
use gembridge_api::responses::{self, Responses};
use gembridge_api::{messages, ollama, openai};
use gembridge_core::admission::{Admission, AdmissionLimits};
use gembridge_core::driver::Driver;
use gembridge_core::exchange::{Catalog, CatalogConfig, ExchangeConfig, Exchanges, UnknownModels, Unlisted};
use gembridge_core::limit::Limits;
use gembridge_core::log::{Backpressure, From, LogEntry};
use gembridge_core::model::{AgentName, Event, Principal, Seq};
use gembridge_core::session::{AgentSetup, SessionHandle, Sessions, SessionsConfig, TurnState, Viewer};
use gembridge_core::store::MemoryStore;
use gembridge_core::turn::PermissionPolicy;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::http::{Answer, Stream, post};
use super::tools::FakeTools;
use gembridge_core::test_support::{PATIENCE, ScriptedAgents};

pub struct TestServer {
    pub address: SocketAddr,
    pub sessions: Arc<Sessions>,
    pub exchanges: Arc<Exchanges>,
    _server: JoinSet<()>,
}

pub struct ServerSetup {
    pub config: DialectConfig,
    pub limits: Limits,
    pub mapped: BTreeMap<String, String>,
    pub unknown: UnknownModels,
    pub tools: Option<Arc<FakeTools>>,
    pub admission: AdmissionLimits,
    pub exchange: ExchangeConfig,
}

impl Default for ServerSetup {
    fn default() -> Self {
        Self {
            config: DialectConfig::default(),
            limits: Limits::default(),
            mapped: BTreeMap::new(),
            unknown: UnknownModels::FallBack,
            tools: None,
            admission: AdmissionLimits::default(),
            exchange: ExchangeConfig::default(),
        }
    }
}

impl TestServer {
    /// One agent with the name `played`.
    pub async fn new(agents: &Arc<ScriptedAgents>) -> Self {
        Self::with(&[("played", agents)], ServerSetup::default()).await
    }

    /// The same, with a place for the client's tools.
    pub async fn with_tools(agents: &Arc<ScriptedAgents>, tools: &Arc<FakeTools>) -> Self {
        Self::with(&[("played", agents)], ServerSetup { tools: Some(Arc::clone(tools)), ..ServerSetup::default() })
            .await
    }

    /// The same, for agents that call several at once: they have all the time that a busy machine needs.
    pub async fn with_calls_at_once(agents: &Arc<ScriptedAgents>, tools: &Arc<FakeTools>) -> Self {
        let mut setting = ServerSetup { tools: Some(Arc::clone(tools)), ..ServerSetup::default() };
        setting.limits.gather = Duration::from_secs(3);
        Self::with(&[("played", agents)], setting).await
    }

    pub async fn with(agents: &[(&str, &Arc<ScriptedAgents>)], setting: ServerSetup) -> Self {
        let setup = |agents: &Arc<ScriptedAgents>| AgentSetup {
            driver: Arc::clone(agents) as Arc<dyn Driver>,
            limits: setting.limits,
            policy: PermissionPolicy::reject(),
            admission: Admission::new(setting.admission.clone()),
        };
        let map: HashMap<_, _> = agents.iter().map(|(name, agents)| (AgentName::new(*name), setup(agents))).collect();
        let mut sessions = Sessions::new(Arc::new(MemoryStore::new()), map, SessionsConfig::default());
        if let Some(tools) = setting.tools {
            sessions = sessions.with_tool_host(tools);
        }
        let sessions = Arc::new(sessions);
        let config = CatalogConfig {
            default_agent: AgentName::new(agents[0].0),
            mapped: setting.mapped,
            unknown: setting.unknown,
            unlisted: Unlisted::default(),
        };
        let catalog = Arc::new(Catalog::new(&sessions, config));
        let exchanges = Exchanges::new(Arc::clone(&sessions), catalog, setting.exchange);
        Self::over(sessions, exchanges, setting.config).await
    }

    /// The API over sessions that are there.
    pub async fn over(sessions: Arc<Sessions>, exchanges: Arc<Exchanges>, config: DialectConfig) -> Self {
        let app = Dialects::new(Arc::clone(&exchanges), config);
        let frontends = [
            openai::frontend(Arc::clone(&app)),
            ollama::frontend(Arc::clone(&app)),
            messages::frontend(messages::Messages::new(Arc::clone(&app))),
            responses::frontend(Responses::new(app)),
        ];
        let routes = frontends.into_iter().map(Frontend::unguarded).fold(Router::new(), Router::merge);
        let routes = routes.layer(from_fn(identify));
        let routes = routes.layer(axum::extract::DefaultBodyLimit::disable());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, routes).await.expect("the server runs") });
        Self { address, sessions, exchanges, _server: server }
    }

    /// The session that a response names.
    pub async fn session(&self, headers: &hyper::HeaderMap) -> SessionHandle {
        let id = headers["x-session-id"].to_str().expect("ASCII").parse().expect("an id");
        self.sessions.get(id, &Viewer::Admin).await.expect("the session is there")
    }

    /// Waits until so many of these events are in the log of the session whose turn runs.
    pub async fn until_logged(&self, number: usize, counts: impl Fn(&Event) -> bool) {
        let handle = self.at_work().await;
        let mut seen = handle.attach(From::After(Seq::START), Backpressure::Own).await.expect("the session is there");
        let count = |batch: &[LogEntry]| batch.iter().filter(|entry| counts(&entry.event)).count();
        let mut found: usize = seen.snapshot.iter().map(|batch| count(batch)).sum();
        while found < number {
            let batch = tokio::time::timeout(PATIENCE, seen.follow.recv()).await.expect("more is logged");
            found += count(&batch.expect("the session is there"));
        }
    }

    /// The session whose turn runs.
    async fn at_work(&self) -> SessionHandle {
        for handle in self.sessions.live() {
            if handle.describe().await.is_ok_and(|state| matches!(state.turn, TurnState::Running(_))) {
                return handle;
            }
        }
        panic!("no turn runs");
    }

    /// A whole answer.
    pub async fn ask(&self, request: &Value) -> Answer {
        self.ask_as("ann", &[], request).await
    }

    pub async fn ask_as(&self, principal: &str, headers: &[(&str, &str)], request: &Value) -> Answer {
        self.stream_as(principal, headers, request).await.whole().await
    }

    /// An answer whose body is still to be read.
    pub async fn stream(&self, request: &Value) -> Stream {
        self.stream_as("ann", &[], request).await
    }

    pub async fn stream_as(&self, principal: &str, headers: &[(&str, &str)], request: &Value) -> Stream {
        let mut all = vec![("x-test-principal", principal)];
        all.extend_from_slice(headers);
        post(self.address, "/v1/chat/completions", &all, request.to_string()).await
    }
}

/// Stands in for the guard.
async fn identify(mut request: Request, next: Next) -> Response {
    let principal = request.headers().get("x-test-principal").and_then(|value| value.to_str().ok()).unwrap_or("ann");
    let identity = Identity { principal: Principal::new(principal), rank: Rank::User };
    request.extensions_mut().insert(identity);
    next.run(request).await
}

/// A request with these messages, as role and text.
pub fn chat(messages: &[(&str, &str)]) -> Value {
    let messages: Vec<Value> = messages.iter().map(|(role, text)| json!({"role": role, "content": text})).collect();
    json!({"model": "played", "messages": messages})
}

/// The same with more fields.
pub fn chat_with(messages: &[(&str, &str)], fields: Value) -> Value {
    let mut request = chat(messages);
    let (Value::Object(all), Value::Object(more)) = (&mut request, fields) else { panic!("objects") };
    all.extend(more);
    request
}

/// A history that grows with each answer, as a client keeps it.
pub struct Dialogue(pub Vec<Value>);

impl Dialogue {
    pub fn user(&mut self, text: &str) -> Value {
        self.0.push(json!({"role": "user", "content": text}));
        json!({"model": "played", "messages": self.0})
    }

    pub fn assistant(&mut self, text: &str) {
        self.0.push(json!({"role": "assistant", "content": text}));
    }
}
