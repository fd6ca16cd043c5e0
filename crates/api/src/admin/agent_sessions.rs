//! `/admin/agent-sessions…`: the sessions that the agents of this machine keep in files of their own, to read, to search and
//! to go on with. Admin keys only. A session is named by its agent and its id, never by a path.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::middleware::from_fn;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use gembridge_core::model::Principal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::operator::{admins_only, answer};
use crate::identity::Identity;
use crate::problem::{Kind, Problem};

/// Whoever has the agents' sessions.
///
/// Called from routes, several at once. Each call may read many files, and resolves when it has; a call that is dropped
/// may finish its reading, and leaves nothing half done.
pub trait AgentSessions: Send + Sync {
    /// Sessions, the most recently written first.
    fn list(self: Arc<Self>, from: usize, limit: usize) -> Reading<SessionPage>;
    /// Messages of one session, from the number `from` on.
    fn messages(self: Arc<Self>, session: SessionName, from: usize, limit: usize) -> Reading<MessagePage>;
    /// Sessions in which all words stand in one passage, the best first.
    fn search(self: Arc<Self>, words: String, limit: usize) -> Reading<Found>;
    /// Makes it a session of the gateway that belongs to `principal`.
    fn go_on(self: Arc<Self>, session: SessionName, principal: Principal) -> Reading<GoneOn>;
}

/// What a call becomes.
pub type Reading<T> = Pin<Box<dyn Future<Output = Result<T, Problem>> + Send>>;

/// Which session is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionName {
    pub agent: String,
    /// The whole id, as the list has it.
    pub id: String,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SessionPage {
    pub sessions: Vec<AgentSession>,
    /// The `from` of the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
    /// How many there are.
    pub total: usize,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AgentSession {
    pub agent: String,
    pub id: String,
    pub title: Option<String>,
    pub model: Option<String>,
    /// The folder in which the agent worked.
    pub project: Option<String>,
    /// UNIX milliseconds.
    pub updated: u64,
    pub turns: u64,
    pub tokens: u64,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MessagePage {
    pub agent: String,
    pub id: String,
    pub title: Option<String>,
    pub project: Option<String>,
    /// Unified messages, as `gembridge sessions export` writes them, without originals and with long texts cut.
    #[schema(value_type = Vec<Object>)]
    pub messages: Vec<serde_json::Value>,
    /// The `from` of the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
    /// How many places of its files could not be read.
    pub damaged: usize,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Found {
    pub sessions: Vec<FoundSession>,
    /// Present while sessions are still being indexed; what they say is not found yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexing: Option<Indexing>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Indexing {
    pub done: usize,
    pub total: usize,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FoundSession {
    /// `gembridge` for a session of the gateway's own, which is opened by its id.
    pub agent: String,
    pub id: String,
    pub title: Option<String>,
    pub project: Option<String>,
    pub updated: u64,
    /// The best passage around its first word of the query.
    pub snippet: String,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoneOn {
    /// The session of the gateway, to be opened as any other.
    pub session_id: String,
    /// The agent that goes on with it.
    pub agent: String,
    /// The folder in which it works; `null` where it only talks about it.
    pub workspace: Option<String>,
    /// What is different from before, for a person.
    pub note: Option<String>,
}

/// Sessions of one page of the list.
const LISTED: Bound = Bound { usual: 30, most: 100 };
/// Messages of one page of a session.
const SHOWN: Bound = Bound { usual: 100, most: 500 };
/// Sessions that a search finds.
const HITS: Bound = Bound { usual: 20, most: 100 };
/// Bytes of a query.
const LONGEST_QUERY: usize = 1_000;

struct Bound {
    usual: usize,
    most: usize,
}

impl Bound {
    fn of(&self, asked: Option<usize>) -> usize {
        asked.unwrap_or(self.usual).clamp(1, self.most)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    from: Option<usize>,
    limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    q: String,
    limit: Option<usize>,
}

type Library = State<Arc<dyn AgentSessions>>;
type Named = Result<Path<(String, String)>, PathRejection>;

/// Behind a key; an admin's alone gets further.
pub fn routes(sessions: Arc<dyn AgentSessions>) -> Router {
    Router::new()
        .route("/admin/agent-sessions", get(list))
        .route("/admin/agent-sessions/search", get(search))
        .route("/admin/agent-sessions/{agent}/{id}", get(messages))
        .route("/admin/agent-sessions/{agent}/{id}/continue", post(go_on))
        .with_state(sessions)
        .route_layer(from_fn(admins_only))
}

/// The description of these routes, for `/openapi.json`.
#[derive(utoipa::OpenApi)]
#[openapi(paths(list, search, messages, go_on))]
pub struct Description;

/// The sessions that agents of this machine wrote themselves, the most recently written first.
#[utoipa::path(
    get, path = "/admin/agent-sessions", tag = "operations", operation_id = "adminAgentSessions",
    params(
        ("from" = Option<usize>, Query, description = "Sessions to leave out, 0 unless given"),
        ("limit" = Option<usize>, Query, description = "Sessions of a page, 30 unless given, 100 at most"),
    ),
    responses((status = 200, description = "A page of sessions", body = SessionPage), (status = 403, description = "No admin key"))
)]
async fn list(State(library): Library, page: Result<Query<Page>, QueryRejection>) -> Response {
    let page = match asked(page) {
        Ok(page) => page,
        Err(problem) => return answer(Err::<SessionPage, _>(problem)),
    };
    answer(library.list(page.from.unwrap_or(0), LISTED.of(page.limit)).await)
}

/// Sessions in which all words stand in one passage, the gateway's own among them.
#[utoipa::path(
    get, path = "/admin/agent-sessions/search", tag = "operations", operation_id = "adminSearchAgentSessions",
    params(
        ("q" = String, Query, description = "Words, a `\"phrase\"`, or the beginning of a word: `inde*`"),
        ("limit" = Option<usize>, Query, description = "Sessions, 20 unless given, 100 at most"),
    ),
    responses(
        (status = 200, description = "The best first", body = Found),
        (status = 400, description = "There is no word in the query"),
        (status = 403, description = "No admin key"),
    )
)]
async fn search(State(library): Library, words: Result<Query<Words>, QueryRejection>) -> Response {
    let words = match asked(words) {
        Ok(words) if words.q.len() <= LONGEST_QUERY => words,
        Ok(_) => {
            let message = format!("the query is longer than {LONGEST_QUERY} bytes; give fewer words");
            return answer(Err::<Found, _>(Problem::invalid("q", message)));
        }
        Err(problem) => return answer(Err::<Found, _>(problem)),
    };
    answer(library.search(words.q, HITS.of(words.limit)).await)
}

/// What was said in a session.
#[utoipa::path(
    get, path = "/admin/agent-sessions/{agent}/{id}", tag = "operations", operation_id = "adminAgentSession",
    params(
        ("agent" = String, Path, description = "The agent that wrote it, as the list names it"),
        ("id" = String, Path, description = "The agent's own id of the session"),
        ("from" = Option<usize>, Query, description = "Messages to leave out, 0 unless given"),
        ("limit" = Option<usize>, Query, description = "Messages of a page, 100 unless given, 500 at most"),
    ),
    responses(
        (status = 200, description = "A page of messages", body = MessagePage),
        (status = 403, description = "No admin key"),
        (status = 404, description = "No such session"),
    )
)]
async fn messages(State(library): Library, name: Named, page: Result<Query<Page>, QueryRejection>) -> Response {
    let (name, page) = match named(name).and_then(|name| Ok((name, asked(page)?))) {
        Ok(asked) => asked,
        Err(problem) => return answer(Err::<MessagePage, _>(problem)),
    };
    answer(library.messages(name, page.from.unwrap_or(0), SHOWN.of(page.limit)).await)
}

/// Makes a session of an agent's own one of the gateway's, which can be opened and prompted like any other.
#[utoipa::path(
    post, path = "/admin/agent-sessions/{agent}/{id}/continue", tag = "operations", operation_id = "adminContinueAgentSession",
    params(
        ("agent" = String, Path, description = "The agent that wrote it, as the list names it"),
        ("id" = String, Path, description = "The agent's own id of the session"),
    ),
    responses(
        (status = 200, description = "The session of the gateway", body = GoneOn),
        (status = 400, description = "It is the session of a subagent"),
        (status = 403, description = "No admin key"),
        (status = 404, description = "No such session"),
    )
)]
async fn go_on(State(library): Library, Extension(caller): Extension<Identity>, name: Named) -> Response {
    match named(name) {
        Ok(name) => answer(library.go_on(name, caller.principal.clone()).await),
        Err(problem) => answer(Err::<GoneOn, _>(problem)),
    }
}

fn named(name: Named) -> Result<SessionName, Problem> {
    let Path((agent, id)) = name.map_err(|refused| Problem::new(Kind::Invalid, refused.body_text()))?;
    Ok(SessionName { agent, id })
}

pub(super) fn asked<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Problem> {
    query.map(|Query(asked)| asked).map_err(|refused| Problem::new(Kind::Invalid, refused.body_text()))
}
