//! Clients that know the protocol and nothing of ours: they are sent nothing else.

use serde_json::{Value, json};

use crate::acp::support::agents;
use crate::acp::support::client::{Client, hello};
use crate::acp::support::server::TestServer;
use crate::acp::support::{asks, done, text};

/// A client that says no more of itself than the protocol asks for.
async fn plain(server: &TestServer, path: &str) -> Client {
    let mut client = server.connect(path).await;
    client.call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} })).await.unwrap();
    client
}

/// The methods of what a client was sent by itself.
fn methods(messages: &[Value]) -> Vec<&str> {
    messages.iter().filter_map(|message| message["method"].as_str()).collect()
}

#[tokio::test]
async fn a_client_that_says_nothing_of_our_extensions_is_sent_the_protocol_alone() {
    let agents = agents::silent();
    let server = TestServer::new(&agents);
    let mut client = plain(&server, "/acp").await;
    let session = client.new_session().await;
    let id = client.prompt(&session, "one").await;
    agents.until_prompts(0, 1).await;
    // One that waits, one whose question another client answers.
    let second = client.prompt(&session, "two").await;
    agents.does(0, [text("may I"), asks(1)]).await;
    let question = client.named("session/request_permission").await;
    let mut other = server.attached(&session, "").await;
    let asked = other.named("session/request_permission").await;
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "yes" } });
    other.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": outcome })).await;
    other.named("_gembridge/request_resolved").await;
    // The question is closed by now, and a late answer is ignored without an error.
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": outcome })).await;
    agents.does(0, [done()]).await;
    agents.until_prompts(0, 2).await;
    agents.does(0, [done()]).await;
    let mut seen = client.until(|message| message["id"] == second && message.get("result").is_some()).await;
    assert!(seen.iter().any(|message| message["id"] == id && message["result"]["stopReason"] == "end_turn"));
    client.call("session/close", json!({ "sessionId": session })).await.unwrap();
    client.call("session/load", json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })).await.unwrap();
    let last = client.request("$/ping", json!({})).await;
    seen.extend(client.until(|message| message["id"] == last).await);
    let others: Vec<&str> = methods(&seen).into_iter().filter(|method| *method != "session/update").collect();
    assert!(others.is_empty(), "{others:?}");
}

#[tokio::test]
async fn a_client_is_sent_our_extensions_where_it_says_that_it_knows_them() {
    let server = TestServer::new(&agents::echo());
    let in_capabilities = json!({
        "protocolVersion": 1, "clientCapabilities": { "_meta": { "gembridge": { "extensions": true } } },
    });
    for said in [hello(), in_capabilities] {
        let mut client = server.connect("/acp").await;
        client.call("initialize", said).await.unwrap();
        let session = client.new_session().await;
        let id = client.prompt(&session, "hi").await;
        client.named("_gembridge/turn_started").await;
        client.named("_gembridge/turn_ended").await;
        client.answer(id).await.unwrap();
    }
    // Whoever asks to watch the sessions is told of them.
    let mut client = plain(&server, "/acp").await;
    client.call("_gembridge/watch_sessions", json!({})).await.unwrap();
    client.new_session().await;
    client.named("_gembridge/session_changed").await;
}
