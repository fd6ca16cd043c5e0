//! `GET /health`, `/healthz`, `/readyz`: open to all, so they say nothing but whether.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::problem::{Kind, Problem};

const PATHS: [&str; 3] = ["/health", "/healthz", "/readyz"];

/// Whether new work is welcome. The gateway sets it, `/readyz` tells it.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    draining: AtomicBool,
    idle_hands: AtomicBool,
}

impl Readiness {
    /// From now on `/readyz` says no, for good.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::Release);
    }

    /// Whether the default agent can run.
    pub fn set_runnable(&self, runnable: bool) {
        self.0.idle_hands.store(!runnable, Ordering::Release);
    }

    pub fn check(&self) -> Result<(), Problem> {
        let why = if self.0.draining.load(Ordering::Acquire) {
            "the gateway is shutting down"
        } else if self.0.idle_hands.load(Ordering::Acquire) {
            "the default agent keeps failing; `gembridge doctor` says why"
        } else {
            return Ok(());
        };
        Err(Problem::new(Kind::Unavailable { retry_after: Duration::from_secs(5) }, why))
    }
}

/// Open routes: they belong behind `Entry::Open`.
pub fn routes(readiness: Readiness) -> Router {
    let [health, healthz, readyz] = PATHS;
    Router::new().route(health, get(alive)).route(healthz, get(alive)).route(readyz, get(ready)).with_state(readiness)
}

/// Whether a request asks for health: these are answered even when there is no room for others.
pub(crate) fn is_probe(method: &Method, path: &str) -> bool {
    matches!(*method, Method::GET | Method::HEAD) && PATHS.contains(&path)
}

async fn alive() -> Response {
    ok()
}

async fn ready(State(readiness): State<Readiness>) -> Response {
    match readiness.check() {
        Ok(()) => ok(),
        Err(problem) => problem.into_response(),
    }
}

fn ok() -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], r#"{"status":"ok"}"#).into_response()
}
