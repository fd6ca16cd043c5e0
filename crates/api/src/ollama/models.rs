//! What can be named as `model`: lists, descriptions, and a pull of what is there already.

use std::sync::{Arc, OnceLock};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Response, header};
use gembridge_core::exchange::{Catalog, Entry};
use gembridge_core::model::Timestamp;
use serde_json::json as value;

use super::ask::LINES;
use super::decode::{self, LATEST};
use super::{error, wire};
use crate::dialect::{Dialects, json};
use crate::identity::Identity;
use crate::iso_time::iso;
use crate::json::AnyObject;
use crate::keys::Digest;
use crate::problem::Problem;

/// Programs compare it with the version of Ollama that they need, and read numbers in it.
const VERSION: &str = "0.31.2";
/// About as much as a session is told of a history, in tokens. Programs size their windows by it.
const CONTEXT: u64 = 131_072;
/// How long a model is said to stay, in milliseconds: agents are kept warm.
const STAYS: u64 = 3_600_000;

/// Says which version of Ollama programs may take this for.
#[utoipa::path(
    get, path = "/api/version", tag = "ollama", operation_id = "ollamaVersion", security(()),
    responses((status = 200, description = "`version`"))
)]
pub(super) async fn version() -> Response<Body> {
    json(&wire::Version { version: VERSION })
}

/// Lists everything that can be asked for.
#[utoipa::path(
    get, path = "/api/tags", tag = "ollama", operation_id = "ollamaTags",
    responses((status = 200, description = "`models`"))
)]
pub(super) async fn tags(
    State(dialects): State<Arc<Dialects>>,
    Extension(identity): Extension<Identity>,
) -> Response<Body> {
    let catalog = dialects.exchanges.catalog();
    catalog.learn(&identity.principal).await;
    let model = |entry: Entry| {
        let name = name(&entry.id);
        wire::Model {
            model: name.clone(),
            modified_at: started(),
            size: 0,
            digest: digest(&entry),
            details: details(&entry),
            capabilities: capabilities(&entry, catalog),
            name,
        }
    };
    json(&wire::Listing { models: catalog.list().into_iter().map(model).collect() })
}

/// Lists every agent: its processes are kept warm.
#[utoipa::path(
    get, path = "/api/ps", tag = "ollama", operation_id = "ollamaRunning",
    responses((status = 200, description = "`models`"))
)]
pub(super) async fn running(State(dialects): State<Arc<Dialects>>) -> Response<Body> {
    let catalog = dialects.exchanges.catalog();
    let model = |entry: Entry| {
        let name = name(&entry.id);
        wire::Running {
            model: name.clone(),
            size: 0,
            digest: digest(&entry),
            details: details(&entry),
            expires_at: iso(Timestamp(Timestamp::now().0 + STAYS)),
            size_vram: 0,
            context_length: CONTEXT,
            name,
        }
    };
    let agents = catalog.list().into_iter().filter(|entry| entry.id == entry.agent.as_str());
    json(&wire::RunningList { models: agents.map(model).collect() })
}

/// Says what a model can do.
#[utoipa::path(
    post, path = "/api/show", tag = "ollama", operation_id = "ollamaShow",
    request_body(content = AnyObject, description = "`model`"),
    responses((status = 200, description = "What is known of it"), (status = 404, description = "There is none"))
)]
pub(super) async fn show(
    State(dialects): State<Arc<Dialects>>,
    Extension(identity): Extension<Identity>,
    body: Bytes,
) -> Result<Response<Body>, Problem> {
    let (entry, _) = named(&dialects, &identity, &body).await?;
    let family = entry.agent.as_str();
    let model_info = [
        ("general.architecture".to_owned(), value!(family)),
        ("general.basename".to_owned(), value!(entry.id)),
        (format!("{family}.context_length"), value!(CONTEXT)),
    ];
    let shown = wire::Shown {
        license: "",
        modelfile: format!("FROM {}", name(&entry.id)),
        parameters: "",
        template: "",
        details: details(&entry),
        model_info: model_info.into_iter().collect(),
        capabilities: capabilities(&entry, dialects.exchanges.catalog()),
        modified_at: started(),
    };
    Ok(json(&shown))
}

/// Fetches nothing: what is there is there, and what is not cannot be had.
#[utoipa::path(
    post, path = "/api/pull", tag = "ollama", operation_id = "ollamaPull",
    request_body(content = AnyObject, description = "`model`"),
    responses((status = 200, description = "It is there"), (status = 404, description = "There is none"))
)]
pub(super) async fn pull(
    State(dialects): State<Arc<Dialects>>,
    Extension(identity): Extension<Identity>,
    body: Bytes,
) -> Result<Response<Body>, Problem> {
    let (_, stream) = named(&dialects, &identity, &body).await?;
    let mut response = json(&wire::Status { status: "success" });
    if stream {
        response.headers_mut().insert(header::CONTENT_TYPE, LINES);
    }
    Ok(response)
}

/// The model that a body names, and whether it asks for a stream.
async fn named(dialects: &Dialects, identity: &Identity, body: &[u8]) -> Result<(Entry, bool), Problem> {
    let request: wire::Named<'_> = decode::parse(body)?;
    let asked = decode::model(request.model.as_deref().or(request.name.as_deref()))?;
    let catalog = dialects.exchanges.catalog();
    catalog.learn(&identity.principal).await;
    let entry = catalog.entry(&decode::catalog_name(asked, catalog)).ok_or_else(|| error::no_model(asked))?;
    Ok((entry, request.stream.unwrap_or(true)))
}

/// A name of ours with the version that every name has there.
fn name(id: &str) -> String {
    if id.contains(':') { id.to_owned() } else { format!("{id}{LATEST}") }
}

/// Programs take two models with one digest for one model.
fn digest(entry: &Entry) -> String {
    Digest::of(entry.id.as_bytes()).to_hex()
}

fn details(entry: &Entry) -> wire::Details {
    let family = entry.agent.as_str().to_owned();
    wire::Details {
        parent_model: entry.alias_of.clone().unwrap_or_default(),
        format: "agent",
        families: [family.clone()],
        family,
        parameter_size: "",
        quantization_level: "",
    }
}

fn capabilities(entry: &Entry, catalog: &Catalog) -> Vec<&'static str> {
    let sees = catalog.abilities(&entry.agent).is_some_and(|abilities| abilities.image);
    let vision = sees.then_some("vision");
    ["completion", "tools", "thinking"].into_iter().chain(vision).collect()
}

fn started() -> String {
    static STARTED: OnceLock<String> = OnceLock::new();
    STARTED.get_or_init(|| iso(Timestamp::now())).clone()
}
