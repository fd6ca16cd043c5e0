//! The frontend for clients of the OpenAI Responses API: a conversation in items, kept here if the client wants.

mod compaction;
mod create;
mod decode;
mod encode;
mod error;
mod keeper;
mod kept;
mod past;
mod response_id;
mod wire;

use std::sync::Arc;

use axum::Router;
use axum::routing::post;

use crate::dialect::Dialects;
use crate::frontend::Frontend;
use kept::{KeptLimits, KeptResponses};

/// What the routes of this dialect share.
pub struct Responses {
    dialects: Arc<Dialects>,
    kept: Arc<KeptResponses>,
}

const KEPT: KeptLimits = KeptLimits { bytes: 64 << 20, responses: 4_096 };

impl Responses {
    pub fn new(dialects: Arc<Dialects>) -> Arc<Self> {
        Arc::new(Self { dialects, kept: Arc::new(KeptResponses::new(KEPT)) })
    }
}

/// What the server serves of this dialect.
pub fn frontend(state: Arc<Responses>) -> Frontend {
    Frontend { render: error::response, prefixes: &["/v1/responses"], large: router(state), ..Frontend::default() }
}

/// The routes. Every request comes with an [`crate::identity::Identity`] in its extensions.
pub fn router(state: Arc<Responses>) -> Router {
    Router::new().route("/v1/responses", post(create::create)).with_state(state)
}

/// The description of these routes, for `/openapi.json`.
#[derive(utoipa::OpenApi)]
#[openapi(paths(create::create))]
pub struct Description;
