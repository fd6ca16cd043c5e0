//! The same over HTTP/2 with prior knowledge.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::support::{KEY, TestServer, config, digest, soon};

struct Client {
    sender: SendRequest<Body>,
    connection: JoinSet<hyper::Result<()>>,
}

impl Client {
    async fn connect(stage: &TestServer) -> Self {
        let stream = TcpStream::connect(stage.addr).await.unwrap();
        let (sender, driver) = soon(handshake(TokioExecutor::new(), TokioIo::new(stream))).await.unwrap();
        let mut connection = JoinSet::new();
        connection.spawn(driver);
        Self { sender, connection }
    }

    async fn ask(&mut self, target: &str, headers: &[(&str, &str)]) -> hyper::Response<hyper::body::Incoming> {
        let mut request = Request::get(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        soon(self.sender.send_request(request.body(Body::empty()).unwrap())).await.unwrap()
    }
}

/// A body that is sent bit by bit, and what to send it with.
fn body_of_pieces() -> (mpsc::Sender<Bytes>, Body) {
    let (sender, receiver) = mpsc::channel(1);
    let pieces = stream::unfold(receiver, async |mut receiver: mpsc::Receiver<Bytes>| {
        let piece = receiver.recv().await?;
        Some((Ok::<_, Infallible>(piece), receiver))
    });
    (sender, Body::from_stream(pieces))
}

#[tokio::test]
async fn s2_the_authority_is_checked_like_a_host() {
    let stage = TestServer::start();
    for (target, headers, status) in [
        ("http://localhost/who", &[("x-api-key", KEY)][..], 200),
        ("http://localhost/who", &[], 401),
        ("http://evil.example/who", &[("x-api-key", KEY)], 403),
        ("http://localhost/who", &[("x-api-key", KEY), ("host", "evil.example")], 403),
        ("http://localhost/who", &[("x-api-key", KEY), ("origin", "https://evil.example")], 403),
    ] {
        let response = Client::connect(&stage).await.ask(target, headers).await;
        assert_eq!(response.status().as_u16(), status, "{target} {headers:?}");
        assert!(response.headers().contains_key("x-request-id"));
    }
}

#[tokio::test]
async fn s1_who_is_refused_while_it_still_sends_gets_the_whole_answer_and_no_reset() {
    let stage = TestServer::start();
    let mut client = Client::connect(&stage).await;
    let (body, sending) = body_of_pieces();
    let request = Request::post("http://localhost/large").header("content-type", "application/json");
    let mut response = soon(client.sender.send_request(request.body(sending).unwrap())).await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let answer = soon(response.body_mut().frame()).await.unwrap().unwrap().into_data().unwrap();
    assert!(answer.starts_with(b"{\"error\":"), "{answer:?}");
    // What it sends on is taken and thrown away; the answer ends when it does.
    for _ in 0..8 {
        soon(body.send(Bytes::from_static(&[b' '; 8 << 10]))).await.unwrap();
    }
    drop(body);
    let rest = soon(response.into_body().collect()).await.expect("the stream ends, and is not reset");
    assert!(rest.to_bytes().is_empty());
}

#[tokio::test]
async fn s1_who_is_refused_and_sends_without_end_is_cut_off() {
    let stage = TestServer::start();
    let mut client = Client::connect(&stage).await;
    let (body, sending) = body_of_pieces();
    let request = Request::post("http://localhost/large").header("content-type", "application/json");
    let response = soon(client.sender.send_request(request.body(sending).unwrap())).await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let refused = async { while body.send(Bytes::from_static(&[b' '; 16 << 10])).await.is_ok() {} };
    soon(refused).await;
}

#[tokio::test]
async fn s6_a_revoked_key_resets_its_stream() {
    let stage = TestServer::start();
    let mut client = Client::connect(&stage).await;
    let mut response = client.ask("http://localhost/stream", &[("x-api-key", KEY)]).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(soon(response.body_mut().frame()).await.unwrap().is_ok());
    stage.keys.revoke(&digest(KEY));
    assert!(soon(response.body_mut().frame()).await.unwrap().is_err());
}

#[tokio::test]
async fn r13_streams_finish_while_the_server_drains() {
    let mut stage = TestServer::start();
    let mut client = Client::connect(&stage).await;
    let wait = Request::get("http://localhost/wait").header("x-api-key", KEY).body(Body::empty()).unwrap();
    let answer = client.sender.send_request(wait);
    stage.arrived(1).await;
    stage.stop.drain.cancel();
    stage.gate.add_permits(1);
    let body = soon(answer).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "done");
    assert_eq!(stage.ended().await, gembridge_api::server::Drained::Whole);
    soon(client.connection.join_next()).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn r7_a_reader_that_stops_reading_one_stream_is_dropped_and_a_silent_stream_is_not() {
    let (mut server, guard) = config();
    server.deadlines.send = Duration::from_millis(300);
    let mut stage = TestServer::with(server, guard);
    let mut patient = Client::connect(&stage).await;
    let mut silent = patient.ask("http://localhost/stream", &[("x-api-key", KEY)]).await;
    assert!(soon(silent.body_mut().frame()).await.unwrap().is_ok());
    let mut stalled = Client::connect(&stage).await;
    let unread = stalled.ask("http://localhost/flood", &[("x-api-key", KEY)]).await;
    assert_eq!(unread.status(), StatusCode::OK);
    soon(stalled.connection.join_next()).await.unwrap().unwrap().ok();
    assert!(stage.dropped.try_recv().is_err(), "silence is no stall");
}
