//! The frontend for ACP clients: one WebSocket, many sessions, and many clients on each of them.

mod connection;
mod decode;
mod encode;
mod error;
#[cfg(test)]
mod fuzz;
mod methods;
mod message_rate;
pub mod proof;
mod replay;
mod subscription;
mod fanout;
mod tap;
mod upgrade;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use gembridge_core::exchange::Catalog;
use gembridge_core::model::AgentName;
use gembridge_core::session::Sessions;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::guard::Guard;

pub use tap::{Direction, Tap, Tapped};

#[derive(Clone, Debug)]
pub struct AcpConfig {
    /// The largest message of a client.
    pub message: usize,
    /// Bytes that a client may be behind before nothing more is taken from its sessions for it.
    pub behind: usize,
    /// A client that is silent for this long is asked for a sign of life, and has as long again to give one.
    pub silence: Duration,
    /// Messages a second, over ten seconds, that a guest's key may send over all its sockets, and an operator over each.
    pub messages_per_second: u32,
    /// Requests of one client that are under way at once.
    pub calls: usize,
    /// Sessions that one client follows at once.
    pub subscriptions: usize,
    pub servers: ClientServers,
    pub work_in_cwd: WorkInCwd,
}

impl Default for AcpConfig {
    fn default() -> Self {
        Self {
            message: 10 << 20,
            behind: 256 << 10,
            silence: Duration::from_secs(30),
            messages_per_second: 500,
            calls: 64,
            subscriptions: 64,
            servers: ClientServers::Refused,
            work_in_cwd: WorkInCwd::Never,
        }
    }
}

/// What becomes of MCP servers that a client names for its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientServers {
    #[default]
    Refused,
    /// Those that are reached over HTTP.
    Allowed,
}

/// Whether an agent that serves as a model works in the folder of an operator's client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkInCwd {
    #[default]
    Never,
    /// Where the client says so when it begins the session, and the operator trusts the folder.
    OnRequest,
}

/// An agent, as its clients are told of it.
#[derive(Clone, Debug)]
pub struct AgentCard {
    pub name: AgentName,
    pub title: String,
    pub execution: Execution,
    /// Where it works when nobody says otherwise.
    pub workspace: Option<PathBuf>,
    /// It is no model, and says so.
    pub is_demo: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// As a model, in an empty folder: a client's folder means nothing to it.
    Chat,
    /// With its tools, in a folder that the operator trusts.
    Agent,
}

/// Which folders the operator lets agents work in.
pub trait TrustedFolders: Send + Sync {
    /// The folder with its links resolved, if it is trusted.
    fn trusted(&self, folder: &Path) -> Option<PathBuf>;
}

/// What the gateway gives this frontend.
pub struct AcpParts {
    pub sessions: Arc<Sessions>,
    pub catalog: Arc<Catalog>,
    /// The default one first.
    pub agents: Vec<AgentCard>,
    pub folders: Arc<dyn TrustedFolders>,
    pub tap: Option<Arc<dyn Tap>>,
    /// Of the gateway.
    pub version: &'static str,
    pub config: AcpConfig,
}

/// Everything that the connections share.
pub struct Acp {
    parts: AcpParts,
    /// The connections, and what is left to do for those that are gone.
    tasks: TaskTracker,
    draining: CancellationToken,
    /// No session is left, so that there is nothing more to wait for.
    over: CancellationToken,
    connections: AtomicUsize,
    fanouts: fanout::FanoutCache,
    message_rates: message_rate::MessageRates,
}

impl Acp {
    pub fn new(parts: AcpParts) -> Arc<Self> {
        Arc::new(Self {
            parts,
            tasks: TaskTracker::new(),
            draining: CancellationToken::new(),
            over: CancellationToken::new(),
            connections: AtomicUsize::new(0),
            fanouts: fanout::FanoutCache::default(),
            message_rates: message_rate::MessageRates::default(),
        })
    }

    /// Every client is told to go once its turns have ended, the idle ones at once.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Every client is told to go, with what it has got. Called when the sessions have ended.
    pub fn end(&self) {
        self.over.cancel();
    }

    /// Resolves when no client is left. Called after [`Acp::drain`].
    pub async fn settle(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Clients that are connected now.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    fn sessions(&self) -> &Arc<Sessions> {
        &self.parts.sessions
    }

    fn card(&self, agent: &AgentName) -> Option<&AgentCard> {
        self.parts.agents.iter().find(|card| card.name == *agent)
    }

    /// How long a question of this agent waits for its answer.
    fn patience(&self, agent: &AgentName) -> Duration {
        let setup = self.parts.sessions.agents().find(|(name, _)| *name == agent);
        setup.map_or(Duration::from_mins(1), |(_, setup)| setup.limits.answer)
    }
}

/// How a client may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    InitializeFirst,
    /// With whatever it likes: the gateway has initialized for it.
    AsItLikes,
}

/// The WebSocket at `/acp`. The guard stands before it and takes tickets here.
pub fn router(app: &Arc<Acp>) -> Router {
    Router::new().route("/acp", get(upgrade::strict)).with_state(Arc::clone(app))
}

/// Where tickets for the WebSocket are made, for a key and never for another ticket.
pub fn tickets(guard: &Arc<Guard>) -> Router {
    Router::new().route("/acp/ticket", post(upgrade::ticket)).with_state(Arc::clone(guard))
}

/// The same WebSocket at `/`, for a port of its own.
pub fn root_router(app: &Arc<Acp>) -> Router {
    Router::new().route("/", get(upgrade::lenient)).with_state(Arc::clone(app))
}

/// The description of these routes, for `/openapi.json`.
#[derive(utoipa::OpenApi)]
#[openapi(paths(upgrade::strict, upgrade::ticket, proof::prove))]
pub struct Description;
