//! `GET /v1/models`: what can be named as `model`.

use std::sync::{Arc, OnceLock};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, header};
use gembridge_core::model::Timestamp;
use serde::Serialize;

use super::{OpenAi, error, wire};
use crate::identity::{Identity, RequestId};
use crate::path::PathName;
use crate::problem::{Kind, Problem};
use gembridge_core::exchange::Entry;

/// Lists what can run: agents, their models, and mapped names.
#[utoipa::path(
    get, path = "/v1/models", tag = "openai", operation_id = "listModels",
    responses((status = 200, description = "What can be named as `model`", body = wire::ModelList))
)]
pub(super) async fn list(State(app): State<Arc<OpenAi>>, Extension(identity): Extension<Identity>) -> Response<Body> {
    app.exchanges.catalog().learn(&identity.principal).await;
    let data = app.exchanges.catalog().list().into_iter().map(entry).collect();
    json(&wire::ModelList { object: "list", data })
}

/// One of them.
#[utoipa::path(
    get, path = "/v1/models/{id}", tag = "openai", operation_id = "getModel",
    params(("id" = String, Path, description = "A name from the list, or `agent/model`")),
    responses(
        (status = 200, description = "It can run", body = wire::ModelEntry),
        (status = 404, description = "It cannot"),
    )
)]
pub(super) async fn get(
    State(app): State<Arc<OpenAi>>,
    Extension(identity): Extension<Identity>,
    request_id: Option<Extension<RequestId>>,
    name: Result<PathName, Problem>,
) -> Response<Body> {
    let request = request_id.map_or_else(RequestId::fresh, |Extension(id)| id);
    let id = match name {
        Ok(PathName(id)) => id,
        Err(problem) => return error::response(&problem, &request),
    };
    app.exchanges.catalog().learn(&identity.principal).await;
    if let Some(found) = app.exchanges.catalog().entry(&id) {
        return json(&entry(found));
    }
    let shown: String = id.chars().take(64).flat_map(char::escape_default).collect();
    let message = format!("model `{shown}` does not exist; `GET /v1/models` lists those that do");
    let problem = Problem { kind: Kind::NotFound, message, param: Some("model".into()) };
    error::response(&problem, &request)
}

fn entry(entry: Entry) -> wire::ModelEntry {
    static STARTED: OnceLock<u64> = OnceLock::new();
    wire::ModelEntry {
        id: entry.id,
        object: "model",
        created: *STARTED.get_or_init(|| Timestamp::now().0 / 1_000),
        owned_by: entry.agent.as_str().to_owned(),
    }
}

fn json(value: &impl Serialize) -> Response<Body> {
    let body = serde_json::to_vec(value).expect("names and numbers always serialise");
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
