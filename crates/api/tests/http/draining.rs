//! The end of the server.

use std::time::Duration;

use gembridge_api::server::Drained;
use tokio::net::TcpStream;

use crate::support::{Client, TestServer, config, request, soon, with_key};

async fn waiting(stage: &mut TestServer, count: usize) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..count {
        let mut client = stage.connect().await;
        client.send(&with_key("GET /wait", &[])).await;
        clients.push(client);
    }
    stage.arrived(count).await;
    clients
}

async fn refuses(stage: &TestServer) {
    soon(async {
        while TcpStream::connect(stage.addr).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn r13_running_requests_finish_idle_connections_are_told_and_new_ones_are_refused() {
    let mut stage = TestServer::start();
    let mut idle = stage.connect().await;
    idle.send(&with_key("GET /who", &[])).await;
    assert_eq!(idle.reply().await.status, 200);
    let mut silent = stage.connect().await;
    let mut running = waiting(&mut stage, 20).await;

    stage.readiness.drain();
    assert_eq!(stage.ask(&request("GET /readyz", &["connection: close"])).await.status, 503);
    assert_eq!(stage.ask(&request("GET /health", &["connection: close"])).await.status, 200);
    stage.stop.drain.cancel();
    refuses(&stage).await;
    // Whoever was connected is told, as often as they ask, and gets no new work done.
    for client in [&mut idle, &mut silent] {
        for _ in 0..2 {
            client.send(&request("GET /readyz", &[])).await;
            assert_eq!(client.reply().await.status, 503);
        }
    }
    silent.send(&with_key("GET /who", &[])).await;
    let refused = silent.reply().await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")));
    silent.closed().await;
    stage.gate.add_permits(20);
    for client in &mut running {
        let reply = client.reply().await;
        assert_eq!((reply.status, reply.body.as_str()), (200, "done"));
        client.closed().await;
    }
    idle.closed().await;
    assert_eq!(stage.ended().await, Drained::Whole);
}

#[tokio::test]
async fn r13_what_does_not_finish_within_the_limit_is_cut() {
    let (mut server, guard) = config();
    server.deadlines.drain = Duration::from_millis(200);
    let mut stage = TestServer::with(server, guard);
    let mut stream = stage.connect().await;
    stream.send(&with_key("GET /stream", &[])).await;
    stream.until("data: one").await;
    stage.stop.drain.cancel();
    assert_eq!(stage.ended().await, Drained::Cut { connections: 1 });
    soon(stage.dropped.recv()).await.unwrap();
    stream.closed().await;
}

#[tokio::test]
async fn r13_the_second_word_does_not_wait() {
    let mut stage = TestServer::start();
    let mut running = waiting(&mut stage, 3).await;
    stage.stop.drain.cancel();
    refuses(&stage).await;
    stage.stop.now.cancel();
    assert_eq!(stage.ended().await, Drained::Cut { connections: 3 });
    for client in &mut running {
        client.closed().await;
    }
}
