//! All routes behind one guard. Which router of a frontend a route stands in decides what it asks of its callers, and
//! which frontend it belongs to decides how its errors are written: both are decided by the route that matched, and not
//! by a path that is read twice.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};

use crate::forward::pass_on;
use crate::frontend::{Frontend, Render, render_plain};
use crate::guard::body::BodySize;
use crate::guard::rate::Purpose;
use crate::guard::{Entry, Guard, KeyedEntry};
use crate::problem::{Kind, Problem};

/// What the server serves. Whatever no route matches needs a key too, and is then not found.
pub fn app(guard: &Arc<Guard>, frontends: impl IntoIterator<Item = Frontend>) -> Router {
    let mut prefixes: Vec<(&'static str, Render)> = Vec::new();
    let mut app = Router::new();
    for frontend in frontends {
        let (render, media) = (frontend.render, frontend.media);
        let keyed = |size, purpose| Entry::Keyed(KeyedEntry { size, media, purpose });
        for (router, entry) in [
            (frontend.open, Entry::Open),
            (frontend.small, keyed(BodySize::Small, Purpose::Work)),
            (frontend.large, keyed(BodySize::Large, Purpose::Work)),
            (frontend.metadata, keyed(BodySize::Large, Purpose::Metadata)),
            (frontend.websocket, Entry::WebSocket),
        ] {
            app = app.merge(behind(router.method_not_allowed_fallback(wrong_method), guard, entry, render));
        }
        prefixes.extend(frontend.prefixes.iter().map(|prefix| (*prefix, render)));
    }
    prefixes.sort_by_key(|(prefix, _)| Reverse(prefix.len()));
    app.merge(unmatched(guard, prefixes))
}

fn behind(router: Router, guard: &Arc<Guard>, entry: Entry, render: Render) -> Router {
    let router = match guard.forwarding() {
        Some(forwarding) => router.layer(from_fn_with_state(Arc::clone(forwarding), pass_on)),
        None => router,
    };
    // The guard has read the body under its own limit.
    router.layer((guard.before(entry, render), DefaultBodyLimit::disable()))
}

/// Answers where no route matches, rendered by the frontend under whose prefix the path lies.
fn unmatched(guard: &Arc<Guard>, prefixes: Vec<(&'static str, Render)>) -> Router {
    let guard = guard.before_each(Entry::Keyed(KeyedEntry::json(BodySize::Small)), move |path| {
        let owner = prefixes.iter().find(|(prefix, _)| is_below(path, prefix));
        owner.map_or(render_plain as Render, |(_, render)| *render)
    });
    Router::new().fallback(unknown).layer(guard)
}

fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

async fn unknown(uri: Uri) -> Problem {
    let path = uri.path().as_bytes().escape_ascii();
    Problem::new(Kind::NotFound, format!("there is nothing at `{path}`"))
}

/// The router adds `allow`.
async fn wrong_method(method: Method, uri: Uri) -> Response {
    if method == Method::OPTIONS {
        return StatusCode::NO_CONTENT.into_response();
    }
    let path = uri.path().as_bytes().escape_ascii();
    let shown = method.as_str().as_bytes().escape_ascii();
    let message = format!("`{path}` does not take `{shown}`; the `allow` header lists what it takes");
    Problem::new(Kind::MethodNotAllowed, message).into_response()
}
