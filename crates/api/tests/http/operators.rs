//! Health and metrics.

use gembridge_api::admin::metrics;

use crate::support::{TestServer, request};

#[tokio::test]
async fn readyz_says_no_while_nothing_can_run_and_yes_again_after() {
    let server = TestServer::start();
    let ready = request("GET /readyz", &[]);
    assert_eq!(server.ask(&ready).await.status, 200);
    server.readiness.set_runnable(false);
    let reply = server.ask(&ready).await;
    assert_eq!(reply.status, 503);
    assert!(reply.header("retry-after").is_some());
    assert_eq!(server.ask(&request("GET /health", &[])).await.status, 200);
    server.readiness.set_runnable(true);
    assert_eq!(server.ask(&ready).await.status, 200);
}

#[tokio::test]
async fn metrics_count_by_route_and_never_by_what_a_client_sent() {
    let handle = metrics::install().unwrap();
    let server = TestServer::start();
    for path in ["/who", "/secret-path-1", "/secret-path-2"] {
        assert_eq!(server.ask(&request(&format!("GET {path}"), &[])).await.status, 401);
    }
    handle.run_upkeep();
    let text = handle.render();
    assert!(text.contains(r#"gembridge_requests_total{route="/who",method="GET",status="401"}"#), "{text}");
    assert!(text.contains(r#"route="unmatched""#), "{text}");
    assert!(!text.contains("secret-path"), "{text}");
    for name in ["gembridge_request_duration_seconds_bucket", "gembridge_active_requests", "gembridge_connections"] {
        assert!(text.contains(name), "{name} in {text}");
    }
}
