//! Hosts and origins.

use gembridge_api::guard::host::Hosts;
use gembridge_api::guard::origin::{Extensions, Origins};
use gembridge_api::guard::{GuardConfig, Reach};

use crate::support::{KEY, TestServer, config, request, with_key};

#[tokio::test]
async fn s2_a_foreign_host_is_refused_before_key_and_body_on_every_route() {
    let stage = TestServer::start();
    for path in ["/who", "/health", "/nowhere", "/large"] {
        for (head, status) in [
            ("host: localhost\r\n", None),
            ("host: evil.example\r\n", Some(403)),
            ("host: localhost.evil.example:11434\r\n", Some(403)),
            ("host: localhost\r\nhost: localhost\r\n", Some(403)),
            ("", Some(403)),
            ("host: evil.example\r\nx-forwarded-host: localhost\r\nforwarded: host=localhost\r\n", Some(403)),
        ] {
            let raw = format!(
                "POST {path} HTTP/1.1\r\n{head}authorization: Bearer {KEY}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n"
            );
            let mut client = stage.connect().await;
            // The body is not sent before the answer is there.
            client.send(&raw).await;
            if let Some(status) = status {
                let reply = client.reply().await;
                assert_eq!(reply.status, status, "{path} {head}");
                assert_eq!(reply.error()["type"], "permission_error");
                client.closed().await;
            } else {
                client.send("{}").await;
                assert_ne!(client.reply().await.status, 403, "{path} {head}");
            }
        }
    }
}

#[tokio::test]
async fn s2_an_absolute_target_counts_as_a_host() {
    let stage = TestServer::start();
    for (target, host, status) in [
        ("http://evil.example/who", "localhost", 403),
        ("http://localhost/who", "evil.example", 403),
        ("http://localhost/who", "localhost", 200),
    ] {
        let raw = format!("GET {target} HTTP/1.1\r\nhost: {host}\r\nx-api-key: {KEY}\r\n\r\n");
        assert_eq!(stage.ask(&raw).await.status, status, "{target} {host}");
    }
    let none = format!("GET /who HTTP/1.0\r\nx-api-key: {KEY}\r\n\r\n");
    assert_eq!(stage.ask(&none).await.status, 403);
}

#[tokio::test]
async fn s3_an_origin_that_is_not_listed_is_refused_on_every_method_and_route() {
    let stage = TestServer::start();
    for method in ["GET", "HEAD", "POST", "DELETE", "OPTIONS"] {
        for path in ["/who", "/health", "/nowhere"] {
            for origin in ["https://evil.example", "null", "http://localhost.evil.com", "http://127.0.0.1.evil"] {
                let raw = with_key(&format!("{method} {path}"), &[&format!("origin: {origin}")]);
                let mut client = stage.connect().await;
                client.send(&raw).await;
                let reply = client.head().await;
                assert_eq!(reply.status, 403, "{method} {path} {origin}");
                assert_eq!(reply.header("access-control-allow-origin"), None);
            }
        }
    }
}

#[tokio::test]
async fn s3_an_allowed_page_reads_answers_and_errors_and_never_with_a_wildcard() {
    let stage = TestServer::start();
    let origin = "http://localhost:3000";
    for (raw, status) in [
        (with_key("GET /who", &["origin: http://localhost:3000"]), 200),
        (request("GET /who", &["origin: http://localhost:3000"]), 401),
        (with_key("GET /nowhere", &["origin: http://localhost:3000"]), 404),
    ] {
        let reply = stage.ask(&raw).await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
        assert_eq!(reply.header("access-control-allow-credentials"), None);
        assert_eq!(reply.header("vary"), Some("origin"));
    }
    let plain = stage.ask(&with_key("GET /who", &[])).await;
    assert_eq!(plain.header("access-control-allow-origin"), None);
    assert_eq!(plain.header("vary"), Some("origin"));
}

#[tokio::test]
async fn s3_a_preflight_is_answered_without_a_key() {
    let stage = TestServer::start();
    let asked = ["origin: http://127.0.0.1:5173", "access-control-request-method: POST"];
    let raw =
        request("OPTIONS /large", &[asked[0], asked[1], "access-control-request-headers: authorization, x-custom"]);
    let reply = stage.ask(&raw).await;
    assert_eq!(reply.status, 204);
    assert_eq!(reply.header("access-control-allow-origin"), Some("http://127.0.0.1:5173"));
    assert_eq!(reply.header("access-control-allow-headers"), Some("authorization, x-custom"));
    assert!(reply.header("access-control-allow-methods").unwrap().contains("post"));
    // A question that no browser asks needs a key like any other.
    assert_eq!(stage.ask(&request("OPTIONS /large", &[asked[0]])).await.status, 401);
}

#[tokio::test]
async fn s3_a_cross_site_request_without_an_origin_is_refused() {
    let stage = TestServer::start();
    assert_eq!(stage.ask(&with_key("GET /who", &["sec-fetch-site: cross-site"])).await.status, 403);
    assert_eq!(stage.ask(&with_key("GET /who", &["sec-fetch-site: same-origin"])).await.status, 200);
}

#[tokio::test]
async fn s3b_a_refused_extension_is_named_with_the_command_that_allows_it_and_that_works_at_once() {
    let (server, guard) = config();
    let stage = TestServer::with(server, GuardConfig { reach: Reach::default(), ..guard });
    let origin = "chrome-extension://abcdefghijklmnopabcdefghijklmnop";
    let raw = with_key("GET /who", &[&format!("origin: {origin}")]);
    let refused = stage.ask(&raw).await;
    assert_eq!(refused.status, 403);
    let message = refused.error()["message"].as_str().unwrap().to_owned();
    assert!(message.contains(&format!("gembridge origins allow {origin}")), "{message}");
    stage
        .guard
        .set_reach(Reach { hosts: Hosts::default(), origins: Origins::new([origin.to_owned()], Extensions::Listed) });
    assert_eq!(stage.ask(&raw).await.status, 200);
}
