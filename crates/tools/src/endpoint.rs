//! The tool server of one agent.

use std::sync::Arc;

use gembridge_core::BoxFuture;
use gembridge_core::tool_host::{Offer, ToolNews};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{Peer, RoleServer};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::auth::{Body, said};
use crate::bridge::Config;
use crate::calls::PendingCalls;
use crate::name::Naming;
use crate::server::Server;
use crate::sessions::Sessions;

pub struct ToolEndpoint {
    pending: Arc<PendingCalls>,
    http: StreamableHttpService<Server, Sessions>,
    sessions: Arc<Sessions>,
    most_sessions: usize,
    /// Ends what is open and has no end of its own.
    hang_up: CancellationToken,
}

impl ToolEndpoint {
    pub fn new(config: &Config, naming: Arc<Naming>, news: mpsc::Sender<ToolNews>) -> Self {
        let pending = Arc::new(PendingCalls::new(naming, config.progress, news));
        let sessions = Arc::new(Sessions::new(pending.clone()));
        let hang_up = CancellationToken::new();
        let settings = StreamableHttpServerConfig::default()
            .with_sse_retry(None)
            .with_sse_keep_alive(Some(config.keep_alive))
            .with_max_request_body_bytes(config.body_limit)
            .with_cancellation_token(hang_up.clone());
        let server = Server { pending: pending.clone() };
        let http = StreamableHttpService::new(move || Ok(server.clone()), sessions.clone(), settings);
        Self { pending, http, sessions, most_sessions: config.sessions, hang_up }
    }

    pub fn offer(&self, offer: &Offer) -> (BoxFuture<'static, ()>, Vec<Peer<RoleServer>>) {
        self.pending.offer(offer)
    }

    pub async fn sessions(&self) -> usize {
        self.sessions.count().await
    }

    /// The calls that wait.
    pub fn calls(&self) -> usize {
        self.pending.calls()
    }

    pub async fn serve(&self, request: Request<Incoming>) -> Response<Body> {
        let begins = request.method() == Method::POST && !request.headers().contains_key("mcp-session-id");
        if begins && !self.sessions.make_room(self.most_sessions).await {
            return said(
                StatusCode::SERVICE_UNAVAILABLE,
                "this agent has too many sessions, and a call waits in each; end one first",
            );
        }
        self.http.handle(request).await
    }

    /// Whoever waits is told that nobody will answer.
    pub fn close(&self) {
        self.pending.close();
    }

    /// Resolves when they have read it.
    pub async fn answered(&self) {
        self.sessions.answered().await;
    }

    /// Ends the sessions and what is still open of them.
    pub async fn hang_up(&self) {
        self.hang_up.cancel();
        self.sessions.close_all().await;
    }
}
