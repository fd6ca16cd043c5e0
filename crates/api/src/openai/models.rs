//! `GET /v1/models`: what can be named as `model`.

use std::sync::{Arc, OnceLock};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use gembridge_core::model::{PromptAbilities, Timestamp};

use super::wire;
use crate::dialect::{Dialects, VENDOR_PREFIX, brief, json};
use crate::identity::Identity;
use crate::iso_time::iso;
use crate::path::PathName;
use crate::problem::{Kind, Problem};
use gembridge_core::exchange::{Catalog, Entry};

/// Lists what can run: agents, their models, and mapped names.
#[utoipa::path(
    get, path = "/v1/models", tag = "openai", operation_id = "listModels",
    responses((status = 200, description = "What can be named as `model`", body = wire::ModelList))
)]
pub(super) async fn list(
    State(app): State<Arc<Dialects>>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
) -> Response<Body> {
    app.exchanges.catalog().learn(&identity.principal).await;
    let catalog = app.exchanges.catalog();
    let mut listed = catalog.list();
    if headers.contains_key(MESSAGES_VERSION) {
        // Some of these clients look for names of their vendor alone.
        let prefixed = |entry: &Entry| Entry {
            id: format!("{VENDOR_PREFIX}{}", entry.id),
            agent: entry.agent.clone(),
            alias_of: Some(entry.id.clone()),
        };
        listed.extend(listed.iter().map(prefixed).collect::<Vec<_>>());
    }
    let data: Vec<_> = listed.into_iter().map(|listed| entry(listed, catalog)).collect();
    let id = |entry: Option<&wire::ModelEntry>| entry.map(|entry| entry.id.clone());
    let (first_id, last_id) = (id(data.first()), id(data.last()));
    json(&wire::ModelList { object: "list", data, has_more: false, first_id, last_id })
}

/// The header by which clients of the Messages API are known.
const MESSAGES_VERSION: &str = "anthropic-version";

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
    PathName(id): PathName,
) -> Result<Response<Body>, Problem> {
    app.exchanges.catalog().learn(&identity.principal).await;
    let found = app.exchanges.catalog().entry(id.strip_prefix(VENDOR_PREFIX).unwrap_or(&id));
    let found = found.ok_or_else(|| {
        let message = format!("model `{}` does not exist; `GET /v1/models` lists those that do", brief(&id));
        Problem { kind: Kind::NotFound, message, param: Some("model".into()) }
    })?;
    Ok(json(&entry(found, app.exchanges.catalog())))
}

fn entry(entry: Entry, catalog: &Catalog) -> wire::ModelEntry {
    static STARTED: OnceLock<Timestamp> = OnceLock::new();
    let started = *STARTED.get_or_init(Timestamp::now);
    let modalities = |abilities: PromptAbilities| {
        let besides = [("image", abilities.image), ("audio", abilities.audio)];
        ["text"].into_iter().chain(besides.into_iter().filter_map(|(kind, is_read)| is_read.then_some(kind))).collect()
    };
    wire::ModelEntry {
        display_name: entry.id.clone(),
        id: entry.id,
        object: "model",
        r#type: "model",
        created: started.0 / 1_000,
        created_at: iso(started),
        owned_by: entry.agent.as_str().to_owned(),
        alias_of: entry.alias_of,
        input_modalities: catalog.abilities(&entry.agent).map(modalities),
    }
}
