//! Errors come in the envelope of the frontend whose route matched, whoever refuses the request.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use gembridge_api::frontend::{Frontend, Media};
use gembridge_api::guard::GuardConfig;
use gembridge_api::guard::rate::Rate;
use gembridge_api::identity::RequestId;
use gembridge_api::problem::{Kind, Problem};

use crate::support::{Reply, TestServer, config, request, with_key};

const JSON: &str = "content-type: application/json";

/// A protocol whose errors are lines of text.
fn toy() -> Frontend {
    let small = Router::new()
        .route("/toy/small", post(|body: Bytes| async move { body.len().to_string() }))
        .route("/toy/panic", get(panics))
        .route("/toy/teapot", get(teapot))
        .route("/toy/busy", get(|| async { Problem::new(Kind::Agent, "the agent failed") }));
    Frontend { render, prefixes: &["/toy"], small, ..Frontend::default() }
}

fn render(problem: &Problem, _: &RequestId) -> Response {
    let mut response = Response::new(Body::from(format!("toy {}: {}", problem.kind.code(), problem.message)));
    *response.status_mut() = problem.kind.status();
    response
}

async fn panics() -> &'static str {
    panic!("the secret text of a panic")
}

/// A problem whose route says more about it than its kind does.
async fn teapot() -> (StatusCode, [(&'static str, &'static str); 1], Problem) {
    (StatusCode::IM_A_TEAPOT, [("x-brew", "green")], Problem::new(Kind::Invalid, "no coffee"))
}

fn stage() -> TestServer {
    let (server, guard) = config();
    TestServer::beside(server, guard, [toy()])
}

#[track_caller]
fn assert_toy(reply: &Reply, status: u16, code: &str) {
    assert_eq!(reply.status, status, "{}", reply.body);
    assert!(reply.body.starts_with(&format!("toy {code}: ")), "{}", reply.body);
    assert!(reply.header("x-request-id").is_some());
}

#[tokio::test]
async fn the_guards_refusals_are_written_by_the_frontend_that_owns_the_route() {
    let stage = stage();
    let too_large = with_key("POST /toy/small", &[JSON, "content-length: 65537"]);
    for (asked, status, code) in [
        (request("GET /toy/panic", &[]), 401, "invalid_api_key"),
        (request("GET /toy/panic", &["x-api-key: wrong"]), 401, "invalid_api_key"),
        (request("GET /toy/panic", &["x-api-key: one", "authorization: Bearer two"]), 400, "invalid_request"),
        (with_key("GET /toy/panic", &["origin: https://evil.example"]), 403, "forbidden"),
        (too_large, 413, "request_too_large"),
        (
            with_key("POST /toy/small", &["content-type: text/plain", "content-length: 1"]),
            415,
            "unsupported_media_type",
        ),
        (with_key("GET /toy/panic", &[]), 500, "internal_error"),
    ] {
        let reply = stage.ask(&asked).await;
        assert_toy(&reply, status, code);
        assert!(!reply.body.contains("secret"));
    }
}

#[tokio::test]
async fn what_no_route_matches_below_a_prefix_is_written_by_its_frontend() {
    let stage = stage();
    for path in ["/toy", "/toy/", "/toy/nowhere", "/toy/small/more"] {
        assert_toy(&stage.ask(&with_key(&format!("GET {path}"), &[])).await, 404, "not_found");
        assert_toy(&stage.ask(&request(&format!("GET {path}"), &[])).await, 401, "invalid_api_key");
    }
    let wrong = stage.ask(&with_key("DELETE /toy/small", &[])).await;
    assert_toy(&wrong, 405, "method_not_allowed");
    assert_eq!(wrong.header("allow"), Some("post"));
    for path in ["/toys", "/nowhere", "/"] {
        let reply = stage.ask(&with_key(&format!("GET {path}"), &[])).await;
        assert_eq!((reply.status, &reply.error()["code"]), (404, &"not_found".into()), "{path}");
    }
}

#[tokio::test]
async fn a_problem_that_a_route_answers_with_keeps_what_the_route_said_of_it() {
    let stage = stage();
    assert_toy(&stage.ask(&with_key("GET /toy/busy", &[])).await, 502, "agent_error");
    let reply = stage.ask(&with_key("GET /toy/teapot", &[])).await;
    assert_toy(&reply, 418, "invalid_request");
    assert_eq!(reply.header("x-brew"), Some("green"));
}

#[tokio::test]
async fn a_rate_limit_is_written_by_the_frontend_that_met_it() {
    let (server, guard) = config();
    let rate = Some(Rate { requests: 1, window: Duration::from_mins(10) });
    let stage = TestServer::beside(server, GuardConfig { rate, ..guard }, [toy()]);
    assert_eq!(stage.ask(&with_key("GET /who", &[])).await.status, 200);
    assert_toy(&stage.ask(&with_key("GET /toy/busy", &[])).await, 429, "rate_limit_exceeded");
    assert_eq!(stage.ask(&with_key("GET /who", &[])).await.error()["code"], "rate_limit_exceeded");
}

#[tokio::test]
async fn a_server_without_capacity_answers_in_the_envelope_of_the_route() {
    let (mut server, guard) = config();
    server.connections.most = 0;
    let stage = TestServer::beside(server, guard, [toy()]);
    assert_toy(&stage.ask(&with_key("GET /toy/busy", &[])).await, 503, "unavailable");
    assert_eq!(stage.ask(&with_key("GET /who", &[])).await.error()["code"], "unavailable");
    assert_eq!(stage.ask(&request("GET /health", &[])).await.status, 200);
}

#[tokio::test]
async fn r13_a_server_that_drains_answers_in_the_envelope_of_the_route() {
    let mut stage = stage();
    let (mut running, mut open) = (stage.connect().await, stage.connect().await);
    running.send(&with_key("GET /wait", &[])).await;
    stage.arrived(1).await;
    stage.stop.drain.cancel();
    // The drain has begun once nobody is let in any more.
    while tokio::net::TcpStream::connect(stage.addr).await.is_ok() {
        tokio::task::yield_now().await;
    }
    open.send(&with_key("GET /toy/busy", &[])).await;
    assert_toy(&open.reply().await, 503, "unavailable");
    open.closed().await;
    stage.gate.add_permits(1);
    assert_eq!(running.reply().await.status, 200);
}

#[tokio::test]
async fn a_frontend_whose_protocol_never_looked_takes_bodies_of_any_type() {
    let (server, guard) = config();
    let stage = TestServer::beside(server, guard, [Frontend { media: Media::Any, ..toy() }]);
    for kind in [&["content-type: application/x-www-form-urlencoded"][..], &["content-type: text/plain"], &[]] {
        let headers: Vec<&str> = kind.iter().copied().chain(["content-length: 2"]).collect();
        let asked = with_key("POST /toy/small", &headers) + "{}";
        let reply = stage.ask(&asked).await;
        assert_eq!((reply.status, reply.body.as_str()), (200, "2"), "{kind:?}");
    }
}
