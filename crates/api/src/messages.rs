//! The frontend for clients of the Messages API: messages, and how many tokens they are.

mod count_tokens;
mod create;
pub mod decode;
mod encode;
mod error;
#[cfg(test)]
mod fuzz;
mod threads;
pub mod wire;

use std::sync::Arc;

use axum::Router;
use axum::routing::post;

use self::threads::Threads;
use crate::dialect::Dialects;
use crate::frontend::Frontend;

/// Everything that the routes share.
pub struct Messages {
    dialects: Arc<Dialects>,
    threads: Threads,
}

impl Messages {
    pub fn new(dialects: Arc<Dialects>) -> Arc<Self> {
        Arc::new(Self { dialects, threads: Threads::default() })
    }
}

/// What the server serves of this dialect.
pub fn frontend(state: Arc<Messages>) -> Frontend {
    Frontend {
        render: error::response,
        prefixes: &["/v1/messages"],
        large: create_router(Arc::clone(&state)),
        metadata: count_router(state),
        ..Frontend::default()
    }
}

fn create_router(state: Arc<Messages>) -> Router {
    Router::new().route("/v1/messages", post(create::create)).with_state(state)
}

fn count_router(state: Arc<Messages>) -> Router {
    Router::new().route("/v1/messages/count_tokens", post(count_tokens::count)).with_state(state)
}

/// The description of these routes, for `/openapi.json`.
#[derive(utoipa::OpenApi)]
#[openapi(paths(create::create, count_tokens::count))]
pub struct Description;
