//! From a request to a WebSocket: everything that can be refused is refused before the 101.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse as _;
use axum::{Extension, Json};
use gembridge_core::session::SessionHandle;
use hyper_util::rt::TokioIo;
use serde_json::json;
use uuid::Uuid;

use super::connection::{Connection, Guest};
use super::{Acp, Manner, decode};
use crate::guard::Guard;
use crate::guard::memory_budget::MemoryAccount;
use crate::identity::Identity;
use crate::keys::KeyLease;
use crate::problem::{Kind, Problem};
use crate::websocket::{NotAnUpgrade, Offer, WebSocket};

const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");
/// What we speak, by the name that browsers get back.
const PROTOCOL: &str = "acp.v1";

/// Opens a WebSocket that speaks the Agent Client Protocol: `initialize` first, one JSON-RPC message a text frame.
#[utoipa::path(
    get, path = "/acp", tag = "acp", operation_id = "connectAcp",
    params(
        ("session" = Option<String>, Query, description = "Attaches to this session after `initialize`"),
        ("limit" = Option<u64>, Query, description = "Shows the last so many turns again"),
        ("since" = Option<u64>, Query, description = "Shows what came after this time, in UNIX milliseconds"),
        ("before" = Option<u64>, Query, description = "Shows what came before this time, in UNIX milliseconds"),
        ("after" = Option<u64>, Query, description = "Goes on after the entry with this number"),
        ("ticket" = Option<String>, Query, description = "A ticket instead of a key"),
    ),
    responses(
        (status = 101, description = "A WebSocket; `acp-connection-id` names the connection"),
        (status = 400, description = "A parameter is wrong"),
        (status = 401, description = "No key, or none that is known"),
        (status = 404, description = "No such session"),
        (status = 426, description = "Not a request for a WebSocket"),
    )
)]
pub(super) async fn strict(state: State<Arc<Acp>>, request: Request) -> Response<Body> {
    open(state, request, Manner::InitializeFirst).await
}

pub(super) async fn lenient(state: State<Arc<Acp>>, request: Request) -> Response<Body> {
    open(state, request, Manner::AsItLikes).await
}

async fn open(State(app): State<Arc<Acp>>, request: Request, manner: Manner) -> Response<Body> {
    match switch(&app, request, manner).await {
        Ok(response) => response,
        Err(Refused::Problem(problem)) => problem.into_response(),
        Err(Refused::NotAnUpgrade(what)) => {
            let mut response = Problem::new(Kind::Invalid, what.to_string()).into_response();
            if what != NotAnUpgrade::Key {
                *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
                response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
                response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            }
            response
        }
    }
}

enum Refused {
    Problem(Problem),
    NotAnUpgrade(NotAnUpgrade),
}

impl<P: Into<Problem>> From<P> for Refused {
    fn from(problem: P) -> Self {
        Self::Problem(problem.into())
    }
}

async fn switch(app: &Arc<Acp>, mut request: Request, manner: Manner) -> Result<Response<Body>, Refused> {
    let query = decode::query(request.uri().query().unwrap_or_default())?;
    let offer = Offer::read(request.method(), request.version(), request.headers()).map_err(Refused::NotAnUpgrade)?;
    let identity = request.extensions().get::<Identity>().cloned();
    let identity = identity.ok_or_else(|| {
        Problem::new(Kind::Unauthenticated, "missing identity: the guard must run before this handler")
    })?;
    let lease = request.extensions().get::<KeyLease>().cloned();
    let unmetered = || Problem::new(Kind::Internal, "missing memory account: the guard must run before this handler");
    let memory = request.extensions().get::<MemoryAccount>().cloned().ok_or_else(unmetered)?;
    let session: Option<SessionHandle> = match query.session {
        Some(id) => Some(app.sessions().get(id, &identity.viewer()).await?),
        None => None,
    };
    if app.draining.is_cancelled() {
        let retry_after = std::time::Duration::from_secs(5);
        return Err(Problem::new(Kind::Unavailable { retry_after }, "the gateway is shutting down").into());
    }
    let connection_id = Uuid::now_v7().to_string();
    let mut response = offer.switching(protocol(&offer));
    // A name of ours, which is always a good header.
    if let Ok(value) = HeaderValue::try_from(&connection_id) {
        response.headers_mut().insert(CONNECTION_ID, value);
    }
    let named = query.session;
    let charge = memory.charge();
    let guest = Guest { connection_id, identity, lease, memory, session, named, replay: query.replay, manner };
    let (upgrading, task) = (hyper::upgrade::on(&mut request), Arc::clone(app));
    app.tasks.spawn(async move {
        match upgrading.await {
            Ok(upgraded) => {
                let socket = WebSocket::new(TokioIo::new(upgraded), task.parts.config.message, charge);
                Connection::new(task, socket, guest).run().await;
            }
            Err(failure) => tracing::debug!(%failure, "a connection was gone before it became a WebSocket"),
        }
    });
    Ok(response)
}

/// Ours where it is offered. A browser that offered only its key must get that back, or it hangs up.
fn protocol(offer: &Offer) -> Option<&str> {
    let ours = offer.protocols.iter().find(|protocol| *protocol == PROTOCOL);
    ours.or(offer.protocols.first()).map(String::as_str)
}

/// Makes a ticket: good once, for thirty seconds, instead of a key where a key cannot be sent.
#[utoipa::path(
    post, path = "/acp/ticket", tag = "acp", operation_id = "createAcpTicket",
    responses((status = 200, description = "`ticket`, and `expiresIn` in seconds"), (status = 401, description = "No key"))
)]
pub(super) async fn ticket(State(guard): State<Arc<Guard>>, Extension(lease): Extension<KeyLease>) -> Response<Body> {
    match guard.ticket(&lease).await {
        Ok(ticket) => {
            let seconds = ticket.good_for.as_secs();
            let mut response = Json(json!({ "ticket": ticket.text, "expiresIn": seconds })).into_response();
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        Err(problem) => problem.into_response(),
    }
}
