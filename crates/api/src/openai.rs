//! The frontend for OpenAI clients: chat completions and models.

mod body;
mod chat_completions;
pub mod decode;
mod encode;
mod error;
#[cfg(test)]
mod fuzz;
mod models;
pub mod wire;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use gembridge_core::exchange::Exchanges;
use tokio::sync::Semaphore;

use crate::frontend::Frontend;

#[derive(Clone, Debug)]
pub struct OpenAiConfig {
    /// How long the status of a response waits for the agent's first sign.
    pub first_sign: Duration,
    /// A stream that is silent for this long shows that it lives.
    pub keep_alive: Duration,
}

impl Default for OpenAiConfig {
    fn default() -> Self {
        Self { first_sign: Duration::from_secs(10), keep_alive: Duration::from_secs(15) }
    }
}

/// Everything that the routes share.
pub struct OpenAi {
    exchanges: Arc<Exchanges>,
    config: OpenAiConfig,
    /// Held by whoever has a large request read.
    large_requests: Arc<Semaphore>,
}

impl OpenAi {
    pub fn new(exchanges: Arc<Exchanges>, config: OpenAiConfig) -> Arc<Self> {
        Arc::new(Self { exchanges, config, large_requests: Arc::new(Semaphore::new(1)) })
    }
}

/// What the server serves of this dialect.
pub fn frontend(state: Arc<OpenAi>) -> Frontend {
    Frontend { render: error::response, prefixes: &["/v1", "/chat"], large: router(state), ..Frontend::default() }
}

/// The routes. Every request comes with an [`crate::identity::Identity`] in its extensions.
pub fn router(state: Arc<OpenAi>) -> Router {
    chat_router(Arc::clone(&state)).merge(models_router(state))
}

const VERSIONED: &str = "/v1/chat/completions";
/// The address that some clients build.
const UNVERSIONED: &str = "/chat/completions";

/// Where conversations are sent: bodies are large.
pub fn chat_router(state: Arc<OpenAi>) -> Router {
    Router::new()
        .route(VERSIONED, post(chat_completions::create))
        .route(UNVERSIONED, post(chat_completions::create))
        .with_state(state)
}

pub fn models_router(state: Arc<OpenAi>) -> Router {
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
