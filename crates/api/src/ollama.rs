//! The frontend for clients of Ollama: chat, generate, and what they ask about models.

mod ask;
pub mod decode;
mod encode;
mod error;
#[cfg(test)]
mod fuzz;
mod models;
pub mod wire;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{delete, get, head, post};

use crate::dialect::Dialects;
use crate::frontend::{Frontend, Media};
use crate::problem::{Kind, Problem};

/// What the server serves of this dialect. `/` is the page's, which answers these clients there too.
pub fn frontend(state: Arc<Dialects>) -> Frontend {
    Frontend {
        render: error::response,
        prefixes: &["/api"],
        media: Media::Any,
        open: open_router(),
        large: ask_router(Arc::clone(&state)),
        metadata: models_router(state),
        ..Frontend::default()
    }
}

/// Where programs look whether anything is there. It tells nothing.
fn open_router() -> Router {
    Router::new().route("/api/version", get(models::version)).route("/api/hello", head(|| async {}))
}

fn ask_router(state: Arc<Dialects>) -> Router {
    Router::new().route("/api/chat", post(ask::chat)).route("/api/generate", post(ask::generate)).with_state(state)
}

fn models_router(state: Arc<Dialects>) -> Router {
    let models = Router::new()
        .route("/api/tags", get(models::tags))
        .route("/api/ps", get(models::running))
        .route("/api/show", post(models::show))
        .route("/api/pull", post(models::pull))
        .with_state(state);
    let refused = Router::new()
        .route("/api/embed", post(no_embeddings))
        .route("/api/embeddings", post(no_embeddings))
        .route("/api/create", post(no_changes))
        .route("/api/copy", post(no_changes))
        .route("/api/push", post(no_changes))
        .route("/api/delete", delete(no_changes))
        .route("/api/blobs/{digest}", post(no_changes).head(no_changes));
    models.merge(refused)
}

async fn no_embeddings() -> (StatusCode, Problem) {
    let message = "agents make no embeddings; ask another server for them";
    (StatusCode::NOT_IMPLEMENTED, Problem::new(Kind::Invalid, message))
}

async fn no_changes() -> (StatusCode, Problem) {
    let message = "models belong to the agents here, and cannot be made, copied or deleted";
    (StatusCode::NOT_IMPLEMENTED, Problem::new(Kind::Invalid, message))
}

/// The description of these routes, for `/openapi.json`.
#[derive(utoipa::OpenApi)]
#[openapi(paths(ask::chat, ask::generate, models::version, models::tags, models::running, models::show, models::pull))]
pub struct Description;
