//! What the metrics say of requests. Every meter is kept once it was found: to find one by its labels takes longer than
//! to move it.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::http::Method;
use metrics::{Counter, Gauge, Histogram};

use crate::admin::metrics::names;

/// Looked up at the first request: the recorder is installed by then.
#[derive(Default)]
pub struct Meters {
    active: OnceLock<Gauge>,
    first_token: OnceLock<Histogram>,
    /// One for each route, and one for all requests that no route matched.
    routes: Mutex<HashMap<String, OfRoute>>,
    /// As many as there are models that can run.
    models: Mutex<HashMap<String, Tokens>>,
}

struct OfRoute {
    seconds: Histogram,
    /// By method and status.
    requests: HashMap<(&'static str, u16), Counter>,
}

struct Tokens {
    input: Counter,
    output: Counter,
}

impl Meters {
    pub fn begun(&self) {
        self.active().increment(1.0);
    }

    pub fn ended(&self, route: &str, method: &Method, status: u16, took: Duration) {
        self.active().decrement(1.0);
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        if !routes.contains_key(route) {
            routes.insert(route.to_owned(), OfRoute::new(route));
        }
        let Some(of_route) = routes.get_mut(route) else { return };
        of_route.seconds.record(took.as_secs_f64());
        let method = label(method);
        let requests = of_route.requests.entry((method, status)).or_insert_with(|| {
            let (route, status) = (route.to_owned(), status.to_string());
            metrics::counter!(names::REQUESTS, "route" => route, "method" => method, "status" => status)
        });
        requests.increment(1);
    }

    pub fn first_token(&self, after: Duration) {
        self.first_token.get_or_init(|| metrics::histogram!(names::FIRST_TOKEN_SECONDS)).record(after.as_secs_f64());
    }

    pub fn tokens(&self, model: &str, input: Option<u64>, output: Option<u64>) {
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if !models.contains_key(model) {
            models.insert(model.to_owned(), Tokens::new(model));
        }
        let Some(tokens) = models.get(model) else { return };
        tokens.input.increment(input.unwrap_or(0));
        tokens.output.increment(output.unwrap_or(0));
    }

    fn active(&self) -> &Gauge {
        self.active.get_or_init(|| metrics::gauge!(names::ACTIVE_REQUESTS))
    }
}

impl OfRoute {
    fn new(route: &str) -> Self {
        let seconds = metrics::histogram!(names::REQUEST_SECONDS, "route" => route.to_owned());
        Self { seconds, requests: HashMap::new() }
    }
}

impl Tokens {
    fn new(model: &str) -> Self {
        let counter =
            |kind: &'static str| metrics::counter!(names::TOKENS, "model" => model.to_owned(), "kind" => kind);
        Self { input: counter("input"), output: counter("output") }
    }
}

fn label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
