//! Clients that do not wait for an answer before they say the next thing.

use gembridge_api::acp::AcpConfig;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::acp::support::agents;
use crate::acp::support::client::{said, seqs};
use crate::acp::support::server::{ServerSetup, TestServer};
use crate::acp::support::{done, text};

#[tokio::test]
async fn whoever_attaches_again_and_again_gets_every_answer() {
    let server = TestServer::new(&agents::echo());
    let mut client = server.client().await;
    let session = client.new_session().await;
    let load = json!({ "sessionId": session, "cwd": "/", "mcpServers": [] });
    for round in 0..20 {
        // A client that knows the session takes its place with the first of these, whichever it is.
        let path = if round % 2 == 0 { "/acp".to_owned() } else { format!("/acp?session={session}") };
        let mut client = server.connect(&path).await;
        client.initialize().await;
        let requests = [
            client.request("session/load", load.clone()).await,
            client.prompt(&session, "one").await,
            client.request("session/load", load.clone()).await,
            client.request("_gembridge/attach", json!({ "sessionId": session, "limit": 0 })).await,
            client.prompt(&session, "two").await,
            client.request("session/resume", load.clone()).await,
        ];
        for request in requests {
            client.answer(request).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_cancel_does_not_overtake_the_prompt_that_it_follows() {
    let agents = agents::silent();
    let server = TestServer::new(&agents);
    let session = server.client().await.new_session().await;
    for round in 0..20 {
        let mut client = server.client().await;
        let id = client.prompt(&session, "wait").await;
        if round % 2 == 0 {
            client.notify("session/cancel", json!({ "sessionId": session })).await;
        } else {
            client.notify("$/cancel_request", json!({ "requestId": id })).await;
        }
        assert_eq!(client.answer(id).await.unwrap()["stopReason"], "cancelled");
    }
}

#[tokio::test]
async fn the_id_of_a_prompt_that_runs_is_taken() {
    let agents = agents::silent();
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    let id = client.prompt(&session, "wait").await;
    client.named("_gembridge/turn_started").await;
    client.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "session/list", "params": {} })).await;
    assert_eq!(client.answer(id).await.unwrap_err()["code"], -32600);
    client.notify("session/cancel", json!({ "sessionId": session })).await;
    assert_eq!(client.answer(id).await.unwrap()["stopReason"], "cancelled");
}

#[tokio::test]
async fn s5_whoever_sends_far_too_much_still_learns_why_it_is_shut_out() {
    let config = AcpConfig { message: 1_000, ..AcpConfig::default() };
    let server = TestServer::with(&agents::echo(), ServerSetup { config, ..ServerSetup::default() });
    let mut client = server.client().await;
    // More than the buffers between the two hold.
    client.send_raw(Message::text("x".repeat(16 << 20))).await;
    assert_eq!(client.closed().await.code, 1009);
}

#[tokio::test]
async fn limit_shows_no_half_of_an_answer_where_the_next_prompt_came_before_its_end() {
    let agents = agents::silent();
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    let first = client.prompt(&session, "first").await;
    agents.until_prompts(0, 1).await;
    agents.does(0, [text("a ")]).await;
    client.find(|message| said(std::slice::from_ref(message)) == "a ").await;
    let second = client.prompt(&session, "second").await;
    client.named("_gembridge/queued").await;
    agents.does(0, [text("b ")]).await;
    client.find(|message| said(std::slice::from_ref(message)) == "b ").await;
    // The first one runs still and the second waits: the last turn is the one that runs.
    let mut late = server.attached(&session, "&limit=1").await;
    let shown = late.until(|message| message["method"] == "_gembridge/replay_ended").await;
    assert_eq!(said(&shown), "a b ");
    agents.does(0, [text("c"), done()]).await;
    client.answer(first).await.unwrap();
    agents.until_prompts(0, 2).await;
    agents.does(0, [text("d"), done()]).await;
    client.answer(second).await.unwrap();
    let mut later = server.attached(&session, "&limit=1").await;
    let shown = later.until(|message| message["method"] == "_gembridge/replay_ended").await;
    assert_eq!(said(&shown), "d");
    let seqs = seqs(&shown);
    assert!(seqs.is_sorted() && shown.iter().all(|message| message["params"]["turn"] != 1));
}
