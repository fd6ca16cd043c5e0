//! Connections: how many, how long, and what a stalled one costs others.

use std::time::Duration;

use gembridge_api::server::{Connections, Deadlines, ServerConfig};
use tokio::io::AsyncWriteExt;

use crate::support::{TestServer, config, request, soon, with_key};

fn deadlines(change: impl FnOnce(&mut Deadlines)) -> ServerConfig {
    let (mut server, _) = config();
    change(&mut server.deadlines);
    server
}

#[tokio::test]
async fn s24_half_a_head_is_closed_at_its_deadline_and_so_is_silence_but_no_stream() {
    // As long as a busy machine may need for a head that is sent at once.
    let server = deadlines(|deadlines| deadlines.head = Duration::from_secs(3));
    let mut stage = TestServer::with(server, config().1);
    let mut streaming = stage.connect().await;
    streaming.send(&with_key("GET /stream", &[])).await;
    streaming.until("data: one").await;
    // Each of these waits for a deadline that is as long as the stream's would be.
    let mut halves = Vec::new();
    for opening in ["", "P", "PRI * HT", "GET /who HT", "GET /who HTTP/1.1\r\nhost: local"] {
        let mut client = stage.connect().await;
        client.send(opening).await;
        halves.push(client);
    }
    for client in &mut halves {
        client.closed().await;
    }
    assert!(stage.dropped.try_recv().is_err(), "the deadline is for the head alone");
}

#[tokio::test]
async fn s24_an_idle_connection_is_closed_at_its_deadline() {
    let server = deadlines(|deadlines| deadlines.idle = Duration::from_millis(100));
    let stage = TestServer::with(server, config().1);
    let mut client = stage.connect().await;
    client.send(&with_key("GET /who", &[])).await;
    assert_eq!(client.reply().await.body, "ann");
    client.closed().await;
}

#[tokio::test]
async fn a_connection_serves_one_request_after_the_other_however_their_bytes_come() {
    let stage = TestServer::start();
    let mut client = stage.connect().await;
    let body = with_key("POST /small", &["content-type: application/json", "content-length: 2"]) + "{}";
    for _ in 0..100 {
        client.send(&with_key("GET /who", &[])).await;
        assert_eq!(client.reply().await.body, "ann");
        client.send(&body).await;
        assert_eq!(client.reply().await.body, "2");
        // Two at once, the second in pieces.
        client.send(&(with_key("GET /who", &[]) + "GET /who HT")).await;
        assert_eq!(client.reply().await.body, "ann");
        client.send(&with_key("GET /who", &[])["GET /who HT".len()..]).await;
        assert_eq!(client.reply().await.body, "ann");
    }
}

#[tokio::test]
async fn s24_beyond_the_bound_a_connection_gets_503_and_health_still_answers() {
    let (mut server, guard) = config();
    server.connections = Connections { most: 3, spare: 2, ..Connections::default() };
    let stage = TestServer::with(server, guard);
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut client = stage.connect().await;
        client.send(&with_key("GET /stream", &[])).await;
        client.until("data: one").await;
        held.push(client);
    }
    let refused = stage.ask(&with_key("GET /who", &[])).await;
    assert_eq!((refused.status, refused.header("connection")), (503, Some("close")));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.error()["request_id"], refused.header("x-request-id").unwrap());
    assert_eq!(stage.ask(&request("GET /health", &[])).await.status, 200);
    // The spare ones taken too, the next is closed at once.
    let spare = [stage.connect().await, stage.connect().await];
    stage.connect().await.closed().await;
    drop(spare);
    drop(held);
    soon(async { while stage.ask(&with_key("GET /who", &[])).await.status != 200 {} }).await;
}

#[tokio::test]
async fn r7_a_reader_that_stops_reading_is_dropped() {
    let server = deadlines(|deadlines| deadlines.send = Duration::from_millis(300));
    let mut stage = TestServer::with(server, config().1);
    let mut reader = stage.connect().await;
    reader.send(&with_key("GET /stream", &[])).await;
    reader.until("data: one").await;
    let mut stalled = stage.connect().await;
    stalled.send(&with_key("GET /flood", &[])).await;
    stalled.until("xxx").await;
    // It sends on without reading, until there is nobody to send to.
    soon(async {
        while stalled.stream.write_all(b" ").await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(stage.dropped.try_recv().is_err(), "silence is no stall");
}

#[tokio::test]
async fn r8_a_client_that_leaves_ends_its_stream_and_its_wait() {
    let mut stage = TestServer::start();
    let mut client = stage.connect().await;
    client.send(&with_key("GET /stream", &[])).await;
    client.until("data: one").await;
    drop(client);
    soon(stage.dropped.recv()).await.unwrap();
}

#[tokio::test]
async fn r17_slow_heads_and_slow_bodies_do_not_keep_a_normal_request_waiting() {
    let server = deadlines(|deadlines| deadlines.head = Duration::from_secs(2));
    let (_, mut guard) = config();
    guard.bodies.idle = Duration::from_secs(2);
    guard.bodies.wait = Duration::from_secs(1);
    let stage = TestServer::with(server, guard);
    let mut slow = Vec::new();
    for number in 0..400 {
        let mut client = stage.connect().await;
        if number % 2 == 0 {
            client.send("POST /large HTTP/1.1\r\nhost: loc").await;
        } else {
            let length = if number % 4 == 1 { "1000" } else { "10000000" };
            let headers = ["content-type: application/json", &format!("content-length: {length}")];
            client.send(&(with_key("POST /large", &headers) + "{")).await;
        }
        slow.push(client);
    }
    assert_eq!(stage.ask(&with_key("GET /who", &[])).await.body, "ann");
    let small = with_key("POST /large", &["content-type: application/json", "content-length: 2"]) + "{}";
    assert_eq!(stage.ask(&small).await.body, "2");
    for client in &mut slow {
        client.closed().await;
    }
}

#[tokio::test]
async fn small_pieces_go_out_at_once() {
    let stage = TestServer::start();
    let mut client = stage.connect().await;
    client.send(&with_key("GET /stream", &[])).await;
    // The body has not ended and never will: nothing but the piece itself pushes it out.
    client.until("data: one").await;
}
