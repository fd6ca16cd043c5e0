//! `/admin/…`: what the operator looks at and changes from a page. Admin keys only; reading changes nothing.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::identity::{Identity, Rank};
use crate::path::PathName;
use crate::problem::{Kind, Problem};

/// The gateway behind these routes. What it changes here is changed on disk, as the commands do it.
///
/// Called from routes. A change waits a few seconds at most for another writer of the same file; it must
/// be complete when the call returns, since the caller may have changed its own key.
pub trait Operations: Send + Sync {
    fn status(&self) -> Status;
    fn origins(&self) -> Result<Origins, Problem>;
    fn allow_origin(&self, origin: &str) -> Result<String, Problem>;
    fn remove_origin(&self, origin: &str) -> Result<String, Problem>;
    fn keys(&self) -> Result<Vec<KeyEntry>, Problem>;
    /// The secret, which is told this once.
    fn create_key(&self, name: &str, rank: Rank) -> Result<String, Problem>;
    /// Another secret for the same owner, which is told this once. The old one is good no more.
    fn rotate_key(&self, name: &str) -> Result<String, Problem>;
    fn revoke_key(&self, name: &str) -> Result<(), Problem>;
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub version: String,
    pub uptime_ms: u64,
    pub agents: Vec<AgentStatus>,
    pub queues: Vec<QueueStatus>,
    pub sessions: SessionCounts,
    /// WebSocket clients.
    pub connections: usize,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    pub name: String,
    pub title: String,
    /// `ready`, `starting` or `failing`.
    pub state: &'static str,
    pub processes: Vec<ProcessStatus>,
    /// Processes that wait for their first session.
    pub spares: usize,
    /// Processes that ended unasked since the gateway began.
    pub restarts: u64,
    pub circuit: Circuit,
}

/// Whether the agent is started at all after it failed too often.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Circuit {
    pub open: bool,
    pub retry_after_ms: Option<u64>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessStatus {
    pub pid: Option<u32>,
    pub uptime_ms: Option<u64>,
    pub sessions: u32,
    /// Of the whole tree.
    pub rss_kb: Option<u64>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct QueueStatus {
    pub agent: String,
    pub running: usize,
    pub waiting: usize,
}

#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
pub struct SessionCounts {
    pub live: usize,
    pub running: usize,
    pub waiting: usize,
}

#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct Origins {
    pub allowed: Vec<String>,
    pub refused: Vec<RefusedOrigin>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedOrigin {
    pub origin: String,
    pub count: u64,
    /// UNIX milliseconds.
    pub last_at: u64,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyEntry {
    pub name: String,
    /// `admin` or `user`.
    pub rank: &'static str,
    /// As ISO 8601.
    pub created_at: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct OriginWish {
    origin: String,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct KeyWish {
    name: String,
    /// `user` unless it says `admin`.
    rank: Option<String>,
}

type Gateway = State<Arc<dyn Operations>>;

/// Behind a key; an admin's alone gets further.
pub fn routes(operations: Arc<dyn Operations>) -> Router {
    Router::new()
        .route("/admin/status", get(status))
        .route("/admin/origins", get(origins).post(allow_origin).delete(remove_origin))
        .route("/admin/keys", get(keys).post(create_key))
        .route("/admin/keys/{name}", delete(revoke_key))
        .route("/admin/keys/{name}/rotate", post(rotate_key))
        .with_state(operations)
        .route_layer(from_fn(admins_only))
}

/// The description of these routes, for `/openapi.json`.
#[derive(utoipa::OpenApi)]
#[openapi(paths(status, origins, allow_origin, remove_origin, keys, create_key, rotate_key, revoke_key))]
pub struct Description;

pub(super) async fn admins_only(request: Request, next: Next) -> Response {
    let rank = request.extensions().get::<Identity>().map(|identity| identity.rank);
    if rank == Some(Rank::Admin) {
        return next.run(request).await;
    }
    let message = "an admin key is needed; `gembridge keys create NAME --admin` makes one";
    Problem::new(Kind::Forbidden, message).into_response()
}

/// What the gateway does at this moment.
#[utoipa::path(
    get, path = "/admin/status", tag = "operations", operation_id = "adminStatus",
    responses((status = 200, description = "Agents, queues, sessions", body = Status), (status = 403, description = "No admin key"))
)]
async fn status(State(gateway): Gateway) -> Response {
    Json(gateway.status()).into_response()
}

/// The origins of pages that may call, and those that were refused.
#[utoipa::path(
    get, path = "/admin/origins", tag = "operations", operation_id = "adminOrigins",
    responses((status = 200, description = "Allowed and refused", body = Origins), (status = 403, description = "No admin key"))
)]
async fn origins(State(gateway): Gateway) -> Response {
    answer(gateway.origins())
}

/// Lets pages of an origin call.
#[utoipa::path(
    post, path = "/admin/origins", tag = "operations", operation_id = "adminAllowOrigin", request_body = OriginWish,
    responses((status = 200, description = "It may call from now on"), (status = 400, description = "It is no origin"))
)]
async fn allow_origin(State(gateway): Gateway, body: Bytes) -> Response {
    let allowed = wish::<OriginWish>(&body).and_then(|wish| gateway.allow_origin(&wish.origin));
    answer(allowed.map(|origin| serde_json::json!({ "origin": origin })))
}

/// Lets pages of an origin call no more.
#[utoipa::path(
    delete, path = "/admin/origins", tag = "operations", operation_id = "adminRemoveOrigin", request_body = OriginWish,
    responses((status = 200, description = "It may call no more"), (status = 400, description = "It was not listed"))
)]
async fn remove_origin(State(gateway): Gateway, body: Bytes) -> Response {
    let removed = wish::<OriginWish>(&body).and_then(|wish| gateway.remove_origin(&wish.origin));
    answer(removed.map(|origin| serde_json::json!({ "origin": origin })))
}

/// The keys by name. Never a key itself.
#[utoipa::path(
    get, path = "/admin/keys", tag = "operations", operation_id = "adminKeys",
    responses((status = 200, description = "`keys`: name, rank, since when", body = Vec<KeyEntry>), (status = 403, description = "No admin key"))
)]
async fn keys(State(gateway): Gateway) -> Response {
    answer(gateway.keys().map(|keys| serde_json::json!({ "keys": keys })))
}

/// Makes a key, which is told this once.
#[utoipa::path(
    post, path = "/admin/keys", tag = "operations", operation_id = "adminCreateKey", request_body = KeyWish,
    responses((status = 200, description = "`name` and `key`"), (status = 400, description = "The name is taken, or none"))
)]
async fn create_key(State(gateway): Gateway, body: Bytes) -> Response {
    let created = wish::<KeyWish>(&body).and_then(|wish| {
        let rank = match wish.rank.as_deref() {
            None | Some("user") => Rank::User,
            Some("admin") => Rank::Admin,
            Some(_) => return Err(Problem::invalid("rank", "`rank` is `user` or `admin`")),
        };
        let key = gateway.create_key(&wish.name, rank)?;
        Ok(serde_json::json!({ "name": wish.name, "key": key }))
    });
    answer(created)
}

/// Replaces the secret of a key, which is told this once. The old one stops at once; the sessions of the key stay its own.
#[utoipa::path(
    post, path = "/admin/keys/{name}/rotate", tag = "operations", operation_id = "adminRotateKey",
    params(("name" = String, Path, description = "The name of the key")),
    responses((status = 200, description = "`name` and `key`"), (status = 400, description = "No such key"))
)]
async fn rotate_key(State(gateway): Gateway, PathName(name): PathName) -> Response {
    let rotated = gateway.rotate_key(&name);
    answer(rotated.map(|key| serde_json::json!({ "name": name, "key": key })))
}

/// Revokes a key. Its streams, sockets and live sessions end.
#[utoipa::path(
    delete, path = "/admin/keys/{name}", tag = "operations", operation_id = "adminRevokeKey",
    params(("name" = String, Path, description = "The name of the key")),
    responses((status = 204, description = "It is good for nothing any more"), (status = 400, description = "No such key"))
)]
async fn revoke_key(State(gateway): Gateway, PathName(name): PathName) -> Response {
    match gateway.revoke_key(&name) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(problem) => problem.into_response(),
    }
}

fn wish<T: for<'a> Deserialize<'a>>(body: &[u8]) -> Result<T, Problem> {
    // Not repeated in the message: it may hold what should not be shown.
    serde_json::from_slice(body)
        .map_err(|_| Problem::new(Kind::Invalid, "the request body has the wrong form; `/docs` shows the right one"))
}

pub(super) fn answer(result: Result<impl Serialize, Problem>) -> Response {
    match result {
        Ok(value) => {
            let mut response = Json(value).into_response();
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        Err(problem) => problem.into_response(),
    }
}
