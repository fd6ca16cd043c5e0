//! Bodies: what is read, how much, how slowly.

use std::time::Duration;

use gembridge_api::guard::GuardConfig;
use gembridge_api::guard::body::BodyLimits;

use crate::support::{Client, OTHER_KEY, TestServer, config, request, with_key};

const JSON: &str = "content-type: application/json";

#[tokio::test]
async fn s3_only_json_is_taken() {
    let stage = TestServer::start();
    for (headers, status) in [
        (&[JSON][..], 200),
        (&["content-type: application/json; charset=utf-8"], 200),
        (&["content-type: text/plain"], 415),
        (&["content-type: multipart/form-data; boundary=x"], 415),
        (&["content-type: application/x-www-form-urlencoded"], 415),
        (&[], 415),
        (&[JSON, "content-encoding: gzip"], 415),
        (&[JSON, "content-encoding: identity"], 200),
    ] {
        let headers: Vec<&str> = headers.iter().copied().chain(["content-length: 2"]).collect();
        let reply = stage.ask(&(with_key("POST /small", &headers) + "{}")).await;
        assert_eq!(reply.status, status, "{headers:?}");
    }
}

#[tokio::test]
async fn s25_a_declared_length_beyond_the_limit_is_refused_unread() {
    let stage = TestServer::start();
    for (path, length, passes) in [
        ("/small", 64 << 10, true),
        ("/small", (64 << 10) + 1, false),
        ("/large", 10 << 20, true),
        ("/large", 11 << 20, false),
    ] {
        let mut client = stage.connect().await;
        client.send(&with_key(&format!("POST {path}"), &[JSON, &format!("content-length: {length}")])).await;
        if passes {
            client.push(&vec![b'x'; length]).await.unwrap();
            assert_eq!(client.reply().await.body, length.to_string());
        } else {
            // Not a byte of it was sent.
            let reply = client.reply().await;
            assert_eq!((reply.status, reply.header("connection")), (413, Some("close")), "{path} {length}");
            client.closed().await;
        }
    }
}

#[tokio::test]
async fn s25_where_no_body_is_wanted_a_large_one_is_refused_all_the_same() {
    let stage = TestServer::start();
    for target in ["GET /health", "GET /readyz", "GET /who", "DELETE /who", "GET /nowhere", "GET /large"] {
        let mut client = stage.connect().await;
        client.send(&with_key(target, &[JSON, "content-length: 65537"])).await;
        let reply = client.reply().await;
        assert_eq!((reply.status, reply.header("connection")), (413, Some("close")), "{target}");
        client.closed().await;
    }
}

#[tokio::test]
async fn s25_who_sends_on_regardless_still_gets_to_read_the_413() {
    let stage = TestServer::start();
    let mut client = stage.connect().await;
    client.send(&with_key("POST /large", &[JSON, "content-length: 11534336"])).await;
    // The server may stop listening on the way; what counts is that the answer is not lost with it.
    let pushed = client.push(&vec![b'x'; 11 << 20]).await;
    assert_eq!(client.reply().await.status, 413, "{pushed:?}");
}

#[tokio::test]
async fn s25_a_chunked_body_beyond_the_limit_is_refused_and_closed() {
    let stage = TestServer::start();
    let mut client = stage.connect().await;
    client.send(&with_key("POST /small", &[JSON, "transfer-encoding: chunked"])).await;
    let chunk = [b"4000\r\n".as_slice(), &[b'x'; 0x4000], b"\r\n"].concat();
    for _ in 0..5 {
        client.push(&chunk).await.unwrap();
    }
    let reply = client.reply().await;
    assert_eq!((reply.status, reply.header("connection")), (413, Some("close")));
    client.closed().await;

    let mut client = stage.connect().await;
    client.send(&with_key("POST /large", &[JSON, "transfer-encoding: chunked"])).await;
    for _ in 0..5 {
        client.push(&chunk).await.unwrap();
    }
    client.send("0\r\n\r\n").await;
    assert_eq!(client.reply().await.body, (5 * 0x4000).to_string());
}

#[tokio::test]
async fn s1_no_body_is_read_before_the_key_is_known() {
    let stage = TestServer::start();
    let mut client = stage.connect().await;
    client.send(&request("POST /large", &[JSON, "content-length: 1000", "expect: 100-continue"])).await;
    assert_eq!(client.reply().await.status, 401, "refused without asking for the body");
    let mut client = stage.connect().await;
    client.send(&with_key("POST /large", &[JSON, "content-length: 2", "expect: 100-continue"])).await;
    assert_eq!(client.head().await.status, 100);
    client.send("{}").await;
    assert_eq!(client.reply().await.body, "2");
}

#[tokio::test]
async fn s24_a_body_that_stops_is_given_up() {
    let (server, guard) = config();
    let bodies = BodyLimits { idle: Duration::from_millis(200), ..BodyLimits::default() };
    let stage = TestServer::with(server, GuardConfig { bodies, ..guard });
    let mut client = stage.connect().await;
    client.send(&(with_key("POST /small", &[JSON, "content-length: 10"]) + "{")).await;
    let reply = client.reply().await;
    assert_eq!(reply.status, 400);
    assert!(reply.error()["message"].as_str().unwrap().contains("too slowly"));
    client.closed().await;
}

#[tokio::test]
async fn s26_bodies_beyond_the_budget_wait_their_turn_and_all_are_answered() {
    let (server, guard) = config();
    let stage = TestServer::with(server, guard);
    let body = vec![b'x'; 10 << 20];
    let mut clients = Vec::new();
    for _ in 0..6 {
        let mut client = stage.connect().await;
        client.send(&with_key("POST /large", &[JSON, &format!("content-length: {}", body.len())])).await;
        clients.push(client);
    }
    // Three fit the budget at a time; the others wait unread until one of them is done.
    for client in &mut clients {
        client.push(&body).await.unwrap();
        assert_eq!(client.reply().await.body, body.len().to_string());
    }
}

/// An upload of the guest that has sent this much of `length` bytes and then pauses.
async fn paused_upload(stage: &TestServer, length: usize, sent: usize) -> Client {
    let mut client = stage.connect().await;
    let key = format!("authorization: Bearer {OTHER_KEY}");
    let length = format!("content-length: {length}");
    client.send(&request("POST /large", &[JSON, &key, &length, "expect: 100-continue"])).await;
    assert_eq!(client.head().await.status, 100, "it is being read");
    client.push(&vec![b'x'; sent]).await.unwrap();
    client
}

#[tokio::test]
async fn f8_slow_uploads_of_one_key_leave_others_their_large_bodies() {
    let (server, guard) = config();
    let bodies = BodyLimits { wait: Duration::from_millis(300), ..BodyLimits::default() };
    let stage = TestServer::with(server, GuardConfig { bodies, ..guard });
    let mut uploads = Vec::new();
    for length in [10 << 20, 10 << 20, 10 << 20, 2 << 20] {
        uploads.push(paused_upload(&stage, length, 1_000).await);
    }
    let body = "x".repeat(100_000);
    let length = format!("content-length: {}", body.len());
    let reply = stage.ask(&(with_key("POST /large", &[JSON, &length]) + &body)).await;
    assert_eq!((reply.status, reply.body.as_str()), (200, "100000"));
}

#[tokio::test]
async fn f8_one_key_holds_at_most_its_share_and_is_told_so() {
    let (server, guard) = config();
    let bodies = BodyLimits { wait: Duration::from_millis(300), ..BodyLimits::default() };
    let stage = TestServer::with(server, GuardConfig { bodies, ..guard });
    let _slow = paused_upload(&stage, 10 << 20, (10 << 20) - 1).await;
    let mut second = paused_upload(&stage, 10 << 20, 0).await;
    second.push(&vec![b'x'; 2 << 20]).await.unwrap();
    let refused = second.reply().await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")), "{}", refused.body);
    let told = refused.error()["message"].as_str().unwrap().to_owned();
    assert!(told.contains("this key") && told.contains("try again"), "{told}");
    // Everybody else has the rest.
    let mut client = stage.connect().await;
    client.send(&with_key("POST /large", &[JSON, "content-length: 10485760"])).await;
    client.push(&vec![b'x'; 10 << 20]).await.unwrap();
    assert_eq!(client.reply().await.body, (10 << 20).to_string());
}

#[tokio::test]
async fn what_is_no_request_is_refused_with_the_same_envelope_as_all_else() {
    let stage = TestServer::start();
    let long_line = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(70_000));
    let many = format!("GET /health HTTP/1.1\r\nhost: localhost\r\n{}\r\n", "x-many: 1\r\n".repeat(200));
    for (bytes, status) in [
        ("hello there\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nbroken header\r\n\r\n", 400),
        (long_line.as_str(), 414),
        (many.as_str(), 431),
    ] {
        let mut client = stage.connect().await;
        client.send(bytes).await;
        let reply = client.reply().await;
        assert_eq!(reply.status, status, "{}", &bytes[..20.min(bytes.len())]);
        let error: serde_json::Value = serde_json::from_str(&reply.body).unwrap_or_default();
        assert_eq!(error["error"]["type"], "invalid_request_error", "{}", reply.body);
        assert_eq!(error["error"]["request_id"].as_str(), reply.header("x-request-id"));
        client.closed().await;
    }
    // A good one before it is answered as ever.
    let mut client = stage.connect().await;
    client.send(&request("GET /health", &[])).await;
    assert_eq!(client.reply().await.status, 200);
    client.send("nonsense\r\n\r\n").await;
    assert_eq!(client.reply().await.status, 400);
}
