//! The frontend for OpenAI clients: chat completions and models.

mod chat_completions;
pub mod decode;
mod encode;
mod error;
#[cfg(test)]
mod fuzz;
mod models;
pub mod wire;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::dialect::Dialects;
use crate::frontend::Frontend;

/// What the server serves of this dialect.
pub fn frontend(state: Arc<Dialects>) -> Frontend {
    Frontend {
        render: error::response,
        prefixes: &["/v1", "/chat"],
        large: chat_router(Arc::clone(&state)),
        metadata: models_router(state),
        ..Frontend::default()
    }
}

const VERSIONED: &str = "/v1/chat/completions";
/// The address that some clients build.
const UNVERSIONED: &str = "/chat/completions";

/// Where conversations are sent: bodies are large.
pub fn chat_router(state: Arc<Dialects>) -> Router {
    Router::new()
        .route(VERSIONED, post(chat_completions::create))
        .route(UNVERSIONED, post(chat_completions::create))
        .with_state(state)
}

pub fn models_router(state: Arc<Dialects>) -> Router {
    Router::new().route("/v1/models", get(models::list)).route("/v1/models/{*id}", get(models::get)).with_state(state)
}

/// The description of these routes, for `/openapi.json`.
#[derive(utoipa::OpenApi)]
#[openapi(paths(chat_completions::create, models::list, models::get), modifiers(&BothAddresses))]
pub struct Description;

struct BothAddresses;

impl utoipa::Modify for BothAddresses {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        let Some(mut chat) = api.paths.paths.get(VERSIONED).cloned() else { return };
        if let Some(create) = &mut chat.post {
            create.operation_id = Some("createChatCompletionUnversioned".to_owned());
            create.summary = Some("The same under the address that some clients build.".to_owned());
        }
        api.paths.paths.insert(UNVERSIONED.to_owned(), chat);
    }
}
