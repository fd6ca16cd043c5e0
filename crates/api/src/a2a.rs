//! The frontend for other agents: tasks over JSON-RPC and plain HTTP, in versions 0.3 and 1.0 of A2A.
//!
//! A task is a sequence of turns of one session, and a context is a session. What a task holds is read out of the session's
//! log, so that it needs no store of its own and outlives the process.

mod body;
mod card;
mod error;
mod fold;
mod follow;
#[cfg(test)]
mod fuzz;
mod index;
mod methods;
mod model;
mod rest;
mod rpc;
mod runner;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use gembridge_core::exchange::Catalog;
use gembridge_core::model::AgentName;
use gembridge_core::session::Sessions;
use tokio_util::task::TaskTracker;

use crate::frontend::{Frontend, Media};

/// Where the operator's list of clients' tools comes from.
pub trait OperatorTools: Send + Sync {
    /// The list as it stands now, in the form of `metadata.tools`; or why there is none, for the client. Asked for each
    /// task, so it must be quick.
    fn list(&self) -> Result<Arc<serde_json::Value>, String>;
}

#[derive(Clone)]
pub struct A2aConfig {
    /// A stream that is silent for this long shows that it lives. Clients give up after 120 seconds.
    pub keep_alive: Duration,
    /// Tasks that are listed; the oldest leave the list first.
    pub listed: usize,
    /// A task that did not change for this long leaves the list too, whatever its state.
    pub listed_for: Duration,
    /// Tools of the agent that run without a question to the client.
    pub auto_approve: Arc<[String]>,
    /// Tools that the operator says clients have: for tasks whose first message names none.
    pub operator_tools: Option<Arc<dyn OperatorTools>>,
    /// By which clients reach the gateway: `http`, or `https` where a proxy stands before it.
    pub scheme: &'static str,
}

impl Default for A2aConfig {
    fn default() -> Self {
        Self {
            keep_alive: Duration::from_secs(15),
            listed: 10_000,
            listed_for: Duration::from_hours(30 * 24),
            auto_approve: Arc::new([]),
            operator_tools: None,
            scheme: "http",
        }
    }
}

/// An agent as others are told of it.
#[derive(Clone, Debug)]
pub struct ServedAgent {
    pub name: AgentName,
    pub title: String,
}

/// What the gateway gives this frontend.
pub struct A2aParts {
    pub sessions: Arc<Sessions>,
    pub catalog: Arc<Catalog>,
    pub agents: Vec<ServedAgent>,
    /// Of the gateway.
    pub version: &'static str,
    pub config: A2aConfig,
}

/// Everything that the routes share.
pub struct A2a {
    parts: A2aParts,
    index: index::Index,
    /// What follows the tasks that run.
    tasks: TaskTracker,
    /// When the gateway began, as HTTP writes it: the card has not changed since.
    started: String,
}

impl A2a {
    pub fn new(parts: A2aParts) -> Arc<Self> {
        let index = index::Index::new(parts.config.listed, parts.config.listed_for);
        let started = jiff::Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        Arc::new(Self { parts, index, tasks: TaskTracker::new(), started })
    }

    fn sessions(&self) -> &Arc<Sessions> {
        &self.parts.sessions
    }

    /// Resolves when no task is followed any more. Called after the sessions have ended.
    pub async fn settle(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// What the server serves of this dialect.
pub fn frontend(app: &Arc<A2a>) -> Frontend {
    let open = Router::new()
        .route("/.well-known/agent-card.json", get(card::both))
        .route("/a2a/.well-known/agent-card.json", get(card::both))
        .route("/a2a/v0.3/.well-known/agent-card.json", get(card::of_v03))
        .route("/a2a/v1/.well-known/agent-card.json", get(card::of_v10))
        .with_state(Arc::clone(app));
    let large = Router::new()
        .route("/a2a", post(rpc::call))
        .route("/a2a/", post(rpc::call))
        .route("/a2a/v0.3", post(rpc::call))
        .route("/a2a/v0.3/", post(rpc::call))
        .route("/a2a/v1", post(rpc::call))
        .route("/a2a/v1/", post(rpc::call))
        .route("/a2a/v1/message:send", post(rest::send))
        .route("/a2a/v1/message:stream", post(rest::send_streaming))
        .with_state(Arc::clone(app));
    let small = Router::new()
        .route("/a2a/v1/tasks", get(rest::list))
        .route("/a2a/v1/tasks/{id}", get(rest::get).post(rest::act))
        .route("/a2a/v1/tasks/{id}/pushNotificationConfigs", get(rest::push).post(rest::push))
        .route("/a2a/v1/tasks/{id}/pushNotificationConfigs/{config}", get(rest::push).delete(rest::push))
        .route("/a2a/v1/extendedAgentCard", get(rest::extended_card))
        .with_state(Arc::clone(app));
    Frontend {
        render: error::response,
        prefixes: &["/a2a"],
        media: Media::Any,
        open,
        small,
        large,
        ..Frontend::default()
    }
}

/// The same with JSON-RPC at `/` too, for a port of its own.
pub fn root_frontend(app: &Arc<A2a>) -> Frontend {
    let mut frontend = frontend(app);
    frontend.large = frontend.large.route("/", post(rpc::call).with_state(Arc::clone(app)));
    frontend
}

/// The description of these routes, for `/openapi.json`.
#[derive(utoipa::OpenApi)]
#[openapi(paths(rpc::call, card::both, card::of_v03, card::of_v10))]
pub struct Description;
