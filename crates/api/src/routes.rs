//! All routes behind one guard. Which router a route stands in decides what it asks of its callers, so that the
//! decision is taken on the route that matched and not on a path that is read twice.

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};

use crate::guard::body::Room;
use crate::guard::{Entry, Guard, envelope};
use crate::identity::RequestId;
use crate::problem::{Kind, Problem};

/// The routers of all faces, by what they ask.
#[derive(Default)]
pub struct Faces {
    /// No key: health, the shells of pages.
    pub open: Router,
    /// A key, and bodies of up to 64 KB.
    pub small: Router,
    /// A key, and bodies of up to 10 MB: where conversations are sent.
    pub large: Router,
    /// A key, or a ticket: where a WebSocket begins.
    pub websocket: Router,
}

/// What the server serves. Whatever no route matches needs a key too, and is then not found.
pub fn app(guard: &Arc<Guard>, faces: Faces) -> Router {
    let behind = |router: Router, entry: Entry| {
        // The guard has read the body under its own limit.
        router.method_not_allowed_fallback(wrong_method).layer((guard.before(entry), DefaultBodyLimit::disable()))
    };
    behind(faces.open, Entry::Open)
        .merge(behind(faces.large, Entry::Keyed(Room::Large)))
        .merge(behind(faces.websocket, Entry::WebSocket))
        .merge(behind(faces.small.fallback(unknown), Entry::Keyed(Room::Small)))
}

async fn unknown(uri: Uri, Extension(id): Extension<RequestId>) -> Response {
    let path = uri.path().as_bytes().escape_ascii();
    envelope::response(&Problem::new(Kind::NotFound, format!("there is nothing at `{path}`")), &id)
}

/// The router adds `allow`.
async fn wrong_method(method: Method, uri: Uri, Extension(id): Extension<RequestId>) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let path = uri.path().as_bytes().escape_ascii();
    let shown = method.as_str().as_bytes().escape_ascii();
    let message = format!("`{path}` does not take `{shown}`; the `allow` header lists what it takes");
    envelope::response(&Problem::new(Kind::MethodNotAllowed, message), &id)
}
