//! What one client may cost, and how it is told.

use std::time::Duration;

use gembridge_api::acp::AcpConfig;
use gembridge_core::limit::Limits;
use serde_json::json;

use crate::acp::support::agents;
use crate::acp::support::server::{BOB, ServerSetup, TestServer};

#[tokio::test]
async fn s5_messages_that_are_too_large_or_too_many_close_the_socket() {
    let config = AcpConfig { message: 1_000, messages_per_second: 5, ..AcpConfig::default() };
    let server = TestServer::with(&agents::echo(), ServerSetup { config, ..ServerSetup::default() });
    let mut large = server.client().await;
    large.send_text(&"x".repeat(1_001)).await;
    assert_eq!(large.closed().await.code, 1009);
    let mut many = server.client().await;
    for _ in 0..60 {
        many.notify("$/nothing", json!({})).await;
    }
    assert_eq!(many.closed().await.code, 4009);
}

#[tokio::test]
async fn s5_a_guest_has_one_rate_of_messages_over_all_its_sockets() {
    let config = AcpConfig { messages_per_second: 5, ..AcpConfig::default() };
    let server = TestServer::with(&agents::echo(), ServerSetup { config, ..ServerSetup::default() });
    let (mut first, mut second) = (server.client().await, server.client().await);
    // With the greetings of both these are as many as it may send.
    for _ in 0..24 {
        first.call("$/ping", json!({})).await.unwrap();
        second.call("$/ping", json!({})).await.unwrap();
    }
    second.notify("$/nothing", json!({})).await;
    assert_eq!(second.closed().await.code, 4009);
    let mut of_another = server.connect_as(BOB, "/acp").await;
    of_another.initialize().await;
}

#[tokio::test]
async fn a_client_that_gives_no_sign_of_life_is_let_go() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let config = AcpConfig { silence: Duration::from_secs(3), messages_per_second: 1_000_000, ..AcpConfig::default() };
    let server = TestServer::with(&agents::echo(), ServerSetup { config, ..ServerSetup::default() });
    // One that answers pings by itself stays.
    let mut alive = server.client().await;
    let mut dead = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let request = "GET /acp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer gb-ann\r\nconnection: upgrade\r\n\
                   upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    dead.write_all(request.as_bytes()).await.unwrap();
    let mut answered = Vec::new();
    let mut reading = std::pin::pin!(dead.read_to_end(&mut answered));
    loop {
        tokio::select! {
            read = crate::acp::support::client::soon(&mut reading) => {
                read.unwrap();
                break;
            }
            pong = alive.call("$/ping", json!({})) => assert_eq!(pong, Ok(json!({}))),
        }
    }
    // A ping, then the close with its code.
    let frames = &answered[answered.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4..];
    assert_eq!(frames[0], 0x89);
    let close = frames.iter().position(|byte| *byte == 0x88).unwrap();
    assert_eq!(u16::from_be_bytes([frames[close + 2], frames[close + 3]]), 4010);
    alive.call("$/ping", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_client_has_so_many_requests_and_sessions_at_once_and_is_told_when_it_has_more() {
    let config = AcpConfig { subscriptions: 2, ..AcpConfig::default() };
    let server = TestServer::with(&agents::echo(), ServerSetup { config, ..ServerSetup::default() });
    let mut client = server.client().await;
    client.new_session().await;
    let second = client.new_session().await;
    let error = client.call("session/new", json!({ "cwd": "/", "mcpServers": [] })).await.unwrap_err();
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32000), &json!("busy")));
    client.call("_gembridge/detach", json!({ "sessionId": second })).await.unwrap();
    client.new_session().await;

    let agents = agents::silent();
    let limits = Limits { queued_prompts: 2, ..Limits::default() };
    let server = TestServer::with(&agents, ServerSetup { limits, ..ServerSetup::default() });
    let mut client = server.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "1").await;
    client.named("_gembridge/turn_started").await;
    client.prompt(&session, "2").await;
    client.prompt(&session, "3").await;
    let fourth = client.prompt(&session, "4").await;
    let error = client.answer(fourth).await.unwrap_err();
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32000), &json!("queue_full")));
}

#[tokio::test]
async fn the_same_id_twice_at_once_is_refused() {
    let server = TestServer::new(&agents::silent());
    let mut client = server.client().await;
    let session = client.new_session().await;
    let prompt = json!({
        "jsonrpc": "2.0", "id": "same", "method": "session/prompt",
        "params": { "sessionId": session, "prompt": [{ "type": "text", "text": "x" }] },
    });
    client.send(&prompt).await;
    client.send(&prompt).await;
    let answer = client.find(|message| message["id"] == "same").await;
    assert_eq!(answer["error"]["code"], -32600);
    client.notify("session/cancel", json!({ "sessionId": session })).await;
    let answer = client.find(|message| message["id"] == "same").await;
    assert_eq!(answer["result"]["stopReason"], "cancelled");
}
