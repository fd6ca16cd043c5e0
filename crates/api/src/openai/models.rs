//! `GET /v1/models`: what can be named as `model`.

use std::sync::{Arc, OnceLock};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, header};
use gembridge_core::model::{PromptAbilities, Timestamp};
use serde::Serialize;

use super::{error, wire};
use crate::dialect::Dialects;
use crate::identity::{Identity, RequestId};
use crate::path::PathName;
use crate::problem::{Kind, Problem};
use gembridge_core::exchange::{Catalog, Entry};

/// Lists what can run: agents, their models, and mapped names.
#[utoipa::path(
    get, path = "/v1/models", tag = "openai", operation_id = "listModels",
    responses((status = 200, description = "What can be named as `model`", body = wire::ModelList))
)]
pub(super) async fn list(State(app): State<Arc<Dialects>>, Extension(identity): Extension<Identity>) -> Response<Body> {
    app.exchanges.catalog().learn(&identity.principal).await;
    let catalog = app.exchanges.catalog();
    let data = catalog.list().into_iter().map(|listed| entry(listed, catalog)).collect();
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
    State(app): State<Arc<Dialects>>,
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
        return json(&entry(found, app.exchanges.catalog()));
    }
    let shown: String = id.chars().take(64).flat_map(char::escape_default).collect();
    let message = format!("model `{shown}` does not exist; `GET /v1/models` lists those that do");
    let problem = Problem { kind: Kind::NotFound, message, param: Some("model".into()) };
    error::response(&problem, &request)
}

fn entry(entry: Entry, catalog: &Catalog) -> wire::ModelEntry {
    static STARTED: OnceLock<u64> = OnceLock::new();
    let modalities = |abilities: PromptAbilities| {
        let besides = [("image", abilities.image), ("audio", abilities.audio)];
        ["text"].into_iter().chain(besides.into_iter().filter_map(|(kind, is_read)| is_read.then_some(kind))).collect()
    };
    wire::ModelEntry {
        id: entry.id,
        object: "model",
        created: *STARTED.get_or_init(|| Timestamp::now().0 / 1_000),
        owned_by: entry.agent.as_str().to_owned(),
        alias_of: entry.alias_of,
        input_modalities: catalog.abilities(&entry.agent).map(modalities),
    }
}

fn json(value: &impl Serialize) -> Response<Body> {
    let body = serde_json::to_vec(value).expect("names and numbers always serialise");
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
