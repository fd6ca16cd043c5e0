//! The frontend for clients of the OpenAI Responses API: a conversation in items, kept here if the client wants.

mod background;
mod compaction;
mod conversations;
mod counts;
mod create;
pub mod decode;
mod encode;
mod error;
#[cfg(test)]
mod fuzz;
mod items;
mod kept;
mod past;
mod response_id;
mod socket;
mod stored;
mod wire;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::dialect::{Dialects, RecentLimits};
use crate::frontend::Frontend;
use kept::KeptResponses;

/// What the routes of this dialect share.
pub struct Responses {
    dialects: Arc<Dialects>,
    kept: Arc<KeptResponses>,
    /// Sockets, and responses that go on without their client.
    tasks: TaskTracker,
    draining: CancellationToken,
}

const KEPT: RecentLimits = RecentLimits { bytes: 64 << 20, entries: 4_096 };

impl Responses {
    pub fn new(dialects: Arc<Dialects>) -> Arc<Self> {
        let kept = KeptResponses::new(KEPT);
        Arc::new(Self { dialects, kept, tasks: TaskTracker::new(), draining: CancellationToken::new() })
    }

    /// No socket takes another request: it is closed once its turn has ended.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Resolves when every socket is closed and every background response is over.
    pub async fn settle(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// What the server serves of this dialect.
pub fn frontend(state: Arc<Responses>) -> Frontend {
    Frontend {
        render: error::response,
        prefixes: &["/v1/responses", "/v1/conversations"],
        large: turns(Arc::clone(&state)),
        metadata: metadata(state),
        ..Frontend::default()
    }
}

fn turns(state: Arc<Responses>) -> Router {
    Router::new().route("/v1/responses", post(create::create).get(socket::connect)).with_state(state)
}

/// Nothing of it is work for an agent.
fn metadata(state: Arc<Responses>) -> Router {
    Router::new()
        .route("/v1/responses/input_tokens", post(counts::input_tokens))
        .route("/v1/responses/compact", post(counts::compact))
        .route("/v1/responses/{id}", get(stored::get).delete(stored::delete))
        .route("/v1/responses/{id}/cancel", post(stored::cancel))
        .route("/v1/responses/{id}/input_items", get(stored::input_items))
        .route("/v1/conversations", post(conversations::create))
        .route("/v1/conversations/{id}", get(conversations::get).delete(conversations::delete))
        .route("/v1/conversations/{id}/items", get(conversations::list_items).post(conversations::add_items))
        .with_state(state)
}

/// The description of these routes, for `/openapi.json`.
#[derive(utoipa::OpenApi)]
#[openapi(paths(
    create::create,
    socket::connect,
    counts::input_tokens,
    counts::compact,
    stored::get,
    stored::delete,
    stored::cancel,
    stored::input_items,
    conversations::create,
    conversations::get,
    conversations::delete,
    conversations::list_items,
    conversations::add_items
))]
pub struct Description;
