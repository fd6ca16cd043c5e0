//! One listener for the whole gateway, and the tool endpoints behind it.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use gembridge_core::BoxFuture;
use gembridge_core::driver::{ServerOrigin, ToolServer};
use gembridge_core::model::{Failure, FailureKind};
use gembridge_core::tool_host::{Format, FormatSpec, HostedTools, Offer, ToolHost, ToolList};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::{Token, ToolAuth};
use crate::endpoint::ToolEndpoint;
use crate::format::JsonFormat;
use crate::listener;
use crate::name::Naming;

/// What can be set about the bridge.
#[derive(Clone, Debug)]
pub struct Config {
    /// What agents are told that the server is called.
    pub server: Arc<str>,
    /// What else they may call it, for drivers that give it a name of their own.
    pub aliases: Vec<Arc<str>>,
    /// The longest name of a tool that agents take, with the prefix that they put before it.
    pub name_limit: usize,
    /// The largest message of an agent.
    pub body_limit: usize,
    /// What may happen at one endpoint before the session takes notice. Each call that waits takes up two.
    pub news: usize,
    /// How many sessions one agent may have with its endpoint. For one more, the oldest ends in which nothing waits.
    pub sessions: usize,
    /// How many connections there may be at once, over all endpoints.
    pub connections: usize,
    /// How often a caller that wants to know is told that its call still waits.
    pub progress: Duration,
    /// How often something is sent on a stream that is silent. Below what clients of HTTP take for the end.
    pub keep_alive: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            server: "gembridge".into(),
            aliases: Vec::new(),
            name_limit: 64,
            body_limit: 10 * 1024 * 1024,
            news: 256,
            sessions: 16,
            connections: 20_000,
            progress: Duration::from_secs(5),
            keep_alive: Duration::from_secs(10),
        }
    }
}

/// How long callers have to read that their endpoint is gone.
const PARTING: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
#[error("cannot listen for agents on 127.0.0.1: {0}; is the loopback interface up?")]
pub struct StartError(#[from] std::io::Error);

/// What is open at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub endpoints: usize,
    pub sessions: usize,
    pub calls: usize,
}

/// The tool servers of all sessions, behind one address.
#[derive(Clone)]
pub struct ToolBridge {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    naming: Arc<Naming>,
    address: SocketAddr,
    auth: Arc<ToolAuth>,
    /// The listener, and what has to be told to agents after the fact.
    tasks: TaskTracker,
    runtime: Handle,
    stop: CancellationToken,
}

impl ToolBridge {
    /// Listens on a free port of the loopback interface, until [`ToolBridge::shutdown`].
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let auth = Arc::new(ToolAuth::default());
        let tasks = TaskTracker::new();
        let stop = CancellationToken::new();
        tasks.spawn(listener::listen(listener, auth.clone(), config.connections, stop.clone()));
        let naming = Arc::new(Naming::new(&config.server, &config.aliases, config.name_limit));
        let shared = Shared { config, naming, address, auth, tasks, runtime: Handle::current(), stop };
        Ok(Self { shared: Arc::new(shared) })
    }

    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    pub async fn counts(&self) -> Counts {
        let endpoints = self.shared.auth.endpoints();
        let mut counts = Counts { endpoints: endpoints.len(), ..Counts::default() };
        for endpoint in endpoints {
            counts.sessions += endpoint.sessions().await;
            counts.calls += endpoint.calls();
        }
        counts
    }

    /// Closes every endpoint and the listener, and resolves when nothing of it is left.
    pub async fn shutdown(&self) {
        for endpoint in self.shared.auth.clear() {
            self.shared.part(endpoint);
        }
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

impl fmt::Debug for ToolBridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolBridge").field("address", &self.shared.address).finish_non_exhaustive()
    }
}

impl ToolHost for ToolBridge {
    fn open(&self) -> Result<HostedTools, Failure> {
        let shared = &self.shared;
        if shared.stop.is_cancelled() {
            return Err(Failure::new(FailureKind::ShuttingDown, "the gateway is going down"));
        }
        let token = Token::random().map_err(|error| {
            Failure::new(FailureKind::Internal, format!("cannot make a token for the agent's tools: {error}"))
        })?;
        let (sender, news) = mpsc::channel(shared.config.news);
        let endpoint = Arc::new(ToolEndpoint::new(&shared.config, shared.naming.clone(), sender));
        let authorization = token.as_header();
        shared.auth.add(&token, endpoint.clone());
        let server = ToolServer {
            name: shared.config.server.clone(),
            url: format!("http://{}/mcp", shared.address),
            headers: vec![("Authorization".to_owned(), authorization)],
            origin: ServerOrigin::Ours,
        };
        let list = EndpointTools { shared: shared.clone(), endpoint, token };
        Ok(HostedTools { server, list: Box::new(list), news })
    }

    fn format(&self, wanted: &FormatSpec) -> Result<Arc<dyn Format>, String> {
        Ok(Arc::new(JsonFormat::new(wanted)?))
    }
}

impl Shared {
    /// Fails the calls that wait at an endpoint, then closes its connections.
    fn part(&self, endpoint: Arc<ToolEndpoint>) {
        endpoint.close();
        self.tasks.spawn_on(
            async move {
                if timeout(PARTING, endpoint.answered()).await.is_err() {
                    tracing::debug!("an agent did not read that its tools are gone");
                }
                endpoint.hang_up().await;
            },
            &self.runtime,
        );
    }
}

struct EndpointTools {
    shared: Arc<Shared>,
    endpoint: Arc<ToolEndpoint>,
    token: Token,
}

impl ToolList for EndpointTools {
    fn offer(&mut self, offer: Offer) -> BoxFuture<'static, ()> {
        let (read, stale) = self.endpoint.offer(&offer);
        if !stale.is_empty() {
            self.shared.tasks.spawn_on(
                async move {
                    for peer in stale {
                        if let Err(error) = peer.notify_tool_list_changed().await {
                            tracing::debug!(%error, "an agent could not be told that its tools changed");
                        }
                    }
                },
                &self.shared.runtime,
            );
        }
        read
    }
}

impl Drop for EndpointTools {
    fn drop(&mut self) {
        if let Some(endpoint) = self.shared.auth.remove(&self.token) {
            self.shared.part(endpoint);
        }
    }
}
