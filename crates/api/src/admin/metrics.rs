//! `GET /metrics`: what the gateway counted, as Prometheus reads it. Every name stands here once, and every label has
//! few values: routes, statuses, configured agents and models, never what a client sent.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder, PrometheusHandle};

pub mod names {
    pub const REQUESTS: &str = "gembridge_requests_total";
    pub const REQUEST_SECONDS: &str = "gembridge_request_duration_seconds";
    pub const FIRST_TOKEN_SECONDS: &str = "gembridge_first_token_seconds";
    pub const AGENT_TURN_SECONDS: &str = "gembridge_agent_turn_seconds";
    pub const ACTIVE_REQUESTS: &str = "gembridge_active_requests";
    pub const QUEUE_DEPTH: &str = "gembridge_queue_depth";
    pub const RATE_LIMIT_REJECTIONS: &str = "gembridge_rate_limit_rejections_total";
    pub const AGENT_RESTARTS: &str = "gembridge_agent_restarts_total";
    pub const TOKENS: &str = "gembridge_tokens_total";
    pub const CONNECTIONS: &str = "gembridge_connections";
    pub const CONNECTIONS_REFUSED: &str = "gembridge_connections_refused_total";
}

/// A millisecond to the ten minutes that a turn may last.
const BUCKETS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];

/// Makes the process count. Once for a process; before it, counting costs nothing and is lost.
pub fn install() -> Result<PrometheusHandle, BuildError> {
    let handle = PrometheusBuilder::new().set_buckets(BUCKETS)?.install_recorder()?;
    describe();
    begin();
    Ok(handle)
}

/// Where agents are asked, and how that may end.
const CHAT: &str = "/v1/chat/completions";
const CHAT_ENDS: [&str; 6] = ["200", "429", "500", "502", "503", "504"];

/// Whoever watches for an increase misses the first event of a counter that begins with it. So everything begins at 0,
/// as far as its labels are known.
fn begin() {
    for end in CHAT_ENDS {
        counter!(names::REQUESTS, "route" => CHAT, "method" => "POST", "status" => end).absolute(0);
    }
    for limit in ["requests", "failures"] {
        counter!(names::RATE_LIMIT_REJECTIONS, "limit" => limit).absolute(0);
    }
    counter!(names::CONNECTIONS_REFUSED).absolute(0);
    for name in [names::ACTIVE_REQUESTS, names::CONNECTIONS] {
        gauge!(name).set(0.0);
    }
    // There once they were looked up.
    drop((histogram!(names::FIRST_TOKEN_SECONDS), histogram!(names::REQUEST_SECONDS, "route" => CHAT)));
}

/// The same for what is counted by agent. Its name is a model's too: that of its own choice.
pub fn begin_agent(agent: &str) {
    let agent = agent.to_owned();
    gauge!(names::QUEUE_DEPTH, "agent" => agent.clone()).set(0.0);
    counter!(names::AGENT_RESTARTS, "agent" => agent.clone()).absolute(0);
    for kind in ["input", "output"] {
        counter!(names::TOKENS, "model" => agent.clone(), "kind" => kind).absolute(0);
    }
    drop(histogram!(names::AGENT_TURN_SECONDS, "agent" => agent));
}

fn describe() {
    describe_counter!(names::REQUESTS, "Requests by route, method and status.");
    describe_histogram!(names::REQUEST_SECONDS, Unit::Seconds, "From a request to the end of its answer.");
    describe_histogram!(names::FIRST_TOKEN_SECONDS, Unit::Seconds, "From a request to the first piece of its answer.");
    describe_histogram!(names::AGENT_TURN_SECONDS, Unit::Seconds, "Turns of agents, by agent.");
    describe_gauge!(names::ACTIVE_REQUESTS, "Requests whose answer has not ended.");
    describe_gauge!(names::QUEUE_DEPTH, "Turns that wait for an agent, by agent.");
    describe_counter!(names::RATE_LIMIT_REJECTIONS, "Requests refused for their rate, by limit.");
    describe_counter!(names::AGENT_RESTARTS, "Agents started again after they had ended unasked, by agent.");
    describe_counter!(names::TOKENS, "Tokens by model and kind.");
    describe_gauge!(names::CONNECTIONS, "Open connections.");
    describe_counter!(names::CONNECTIONS_REFUSED, "Connections for which there was no room.");
}

/// Belongs behind a key.
pub fn routes(handle: PrometheusHandle) -> Router {
    Router::new().route("/metrics", get(render)).with_state(handle)
}

async fn render(State(handle): State<PrometheusHandle>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], handle.render())
}

/// Folds what was measured into its histograms, so that a gateway that nobody scrapes does not grow. Runs until it
/// is dropped.
pub async fn upkeep(handle: PrometheusHandle) {
    let mut tick = tokio::time::interval(Duration::from_secs(5));
    loop {
        tick.tick().await;
        handle.run_upkeep();
    }
}
