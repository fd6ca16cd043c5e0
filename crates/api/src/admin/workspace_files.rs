//! `/admin/workspace-files`: the names of files in the folder that an agent works in, for whoever writes a prompt about one of
//! them. Admin keys only, since only their sessions work in folders. Names, never contents.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::middleware::from_fn;
use axum::response::Response;
use axum::routing::get;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::agent_sessions::{Reading, asked};
use super::operator::{admins_only, answer};
use crate::problem::Problem;

/// Whoever can look into the folders. Called from routes, several at once.
pub trait WorkspaceFiles: Send + Sync {
    /// Files below the folder that fit, the best first; none where there is no folder.
    fn find(self: Arc<Self>, place: Place, words: String) -> Reading<Files>;
}

/// Whose folder is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A session's, by its id.
    Session(String),
    /// The one in which an agent's next session works, by the agent's name.
    Agent(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Files {
    /// As seen from the folder, with `/` between names.
    pub files: Vec<String>,
}

/// Bytes of what is looked for.
const LONGEST: usize = 200;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    session: Option<String>,
    agent: Option<String>,
    #[serde(default)]
    q: String,
}

/// Behind a key; an admin's alone gets further.
pub fn routes(files: Arc<dyn WorkspaceFiles>) -> Router {
    Router::new().route("/admin/workspace-files", get(find)).with_state(files).route_layer(from_fn(admins_only))
}

/// The description of these routes, for `/openapi.json`.
#[derive(utoipa::OpenApi)]
#[openapi(paths(find))]
pub struct Description;

/// Files in the folder that an agent works in, by a part of their path.
#[utoipa::path(
    get, path = "/admin/workspace-files", tag = "operations", operation_id = "adminWorkspaceFiles",
    params(
        ("session" = Option<String>, Query, description = "The session that works in the folder"),
        ("agent" = Option<String>, Query, description = "Instead of a session, the agent whose next session will work there"),
        ("q" = Option<String>, Query, description = "Letters of the path, in their order"),
    ),
    responses(
        (status = 200, description = "The best first, 20 at most; none where the agent works in no folder", body = Files),
        (status = 400, description = "Neither a session nor an agent is named"),
        (status = 403, description = "No admin key"),
        (status = 404, description = "No such session"),
    )
)]
async fn find(State(files): State<Arc<dyn WorkspaceFiles>>, wish: Result<Query<Wish>, QueryRejection>) -> Response {
    match asked(wish).and_then(place) {
        Ok((place, words)) => answer(files.find(place, words).await),
        Err(problem) => answer(Err::<Files, _>(problem)),
    }
}

fn place(wish: Wish) -> Result<(Place, String), Problem> {
    if wish.q.len() > LONGEST {
        return Err(Problem::invalid("q", format!("`q` is longer than {LONGEST} bytes; a part of the path is enough")));
    }
    match (wish.session, wish.agent) {
        (Some(session), None) => Ok((Place::Session(session), wish.q)),
        (None, Some(agent)) => Ok((Place::Agent(agent), wish.q)),
        _ => Err(Problem::invalid("session", "name either a `session` or an `agent`")),
    }
}
