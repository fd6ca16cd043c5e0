//! A place: the tool server of one agent, and the requests that are open there.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use gembridge_core::BoxFuture;
use gembridge_core::tool_host::{Offer, ToolNews};
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{Peer, RoleServer};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::bridge::Config;
use crate::desk::{Desk, Edition};
use crate::door::{Body, said};
use crate::name::Naming;
use crate::server::Server;

pub struct Place {
    desk: Arc<Desk>,
    http: StreamableHttpService<Server, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    most_sessions: usize,
    /// Answers that are still being read.
    answers: TaskTracker,
    /// Ends what is open without an end of its own.
    hang_up: CancellationToken,
}

impl Place {
    pub fn new(config: &Config, naming: Arc<Naming>, news: mpsc::Sender<ToolNews>) -> Self {
        let desk = Arc::new(Desk::new(naming, config.progress, news));
        let mut sessions = LocalSessionManager::default();
        // A call may wait longer than any session may be idle: sessions end with their place. And the empty event that
        // announces when to come back is one that agents fall over.
        sessions.session_config.keep_alive = None;
        sessions.session_config.sse_retry = None;
        let sessions = Arc::new(sessions);
        let hang_up = CancellationToken::new();
        let server = Server { desk: desk.clone() };
        let settings = StreamableHttpServerConfig::default()
            .with_sse_retry(None)
            .with_sse_keep_alive(Some(config.keep_alive))
            .with_max_request_body_bytes(config.body_limit)
            .with_cancellation_token(hang_up.clone());
        let http = StreamableHttpService::new(move || Ok(server.clone()), sessions.clone(), settings);
        Self { desk, http, sessions, most_sessions: config.sessions, answers: TaskTracker::new(), hang_up }
    }

    pub fn offer(&self, offer: &Offer) -> (BoxFuture<'static, ()>, Vec<Peer<RoleServer>>) {
        self.desk.offer(offer)
    }

    pub async fn sessions(&self) -> usize {
        self.sessions.sessions.read().await.len()
    }

    /// Requests whose answer is still being read, calls that wait first of all.
    pub fn calls(&self) -> usize {
        self.answers.len()
    }

    pub async fn serve(&self, mut request: Request<Incoming>) -> Response<Body> {
        if request.method() != Method::POST {
            return self.http.handle(request).await;
        }
        if !request.headers().contains_key("mcp-session-id") && self.sessions().await >= self.most_sessions {
            return said(StatusCode::SERVICE_UNAVAILABLE, "this agent is connected too often; close a session first");
        }
        let caller = Arc::new(Caller::default());
        request.extensions_mut().insert(caller.clone());
        let presence = Presence { caller, _answer: self.answers.token() };
        let desk = self.desk.clone();
        self.http.handle(request).await.map(|body| Watched { body, presence, desk }.boxed())
    }

    /// Whoever waits is told that nobody will answer.
    pub fn close(&self) {
        self.desk.close();
        self.answers.close();
    }

    /// Resolves when every answer was read.
    pub async fn answered(&self) {
        self.answers.wait().await;
    }

    /// Ends the sessions and what is still open of them.
    pub async fn hang_up(&self) {
        self.hang_up.cancel();
        let sessions: Vec<_> = self.sessions.sessions.read().await.keys().cloned().collect();
        for session in sessions {
            if let Err(error) = self.sessions.close_session(&session).await {
                tracing::debug!(%error, "a session of an agent with its tools did not close");
            }
        }
    }
}

/// Who sent a request, as long as it reads the answer.
#[derive(Default)]
pub struct Caller {
    /// It does not read any more.
    pub gone: CancellationToken,
    /// The edition of the list that its answer carries; 0 for none.
    carries: AtomicU64,
}

impl Caller {
    pub fn gets(&self, edition: Edition) {
        self.carries.store(edition.0, Ordering::Relaxed);
    }
}

struct Presence {
    caller: Arc<Caller>,
    _answer: TaskTrackerToken,
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.caller.gone.cancel();
    }
}

/// The answer to a request: tells when it was read, or that nobody reads it any more.
struct Watched {
    body: Body,
    presence: Presence,
    desk: Arc<Desk>,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None)) {
            this.desk.was_read(Edition(this.presence.caller.carries.load(Ordering::Relaxed)));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
