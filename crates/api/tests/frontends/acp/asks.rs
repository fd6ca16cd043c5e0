//! Questions of the agent: asked of everybody, answered once.

use std::time::Duration;

use gembridge_core::limit::Limits;
use gembridge_core::model::{Answer, AskId};
use gembridge_core::turn::PermissionPolicy;
use serde_json::{Value, json};

use crate::acp::support::agents;
use crate::acp::support::client::Client;
use crate::acp::support::server::{ServerSetup, TestServer};
use crate::acp::support::{asks, done, text};

fn selected(request: &Value, option: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "outcome": { "outcome": "selected", "optionId": option } } })
}

async fn asked(client: &mut Client) -> Value {
    client.named("session/request_permission").await
}

#[tokio::test]
async fn a_question_reaches_every_client_and_the_first_answer_wins() {
    let agents = agents::scripted(|_| vec![asks(1)]);
    let server = TestServer::new(&agents);
    let mut one = server.client().await;
    let session = one.new_session().await;
    let mut two = server.attached(&session, "").await;
    two.named("_gembridge/replay_ended").await;
    two.call("$/ping", json!({})).await.unwrap();
    let id = one.prompt(&session, "go").await;
    let (of_one, of_two) = (asked(&mut one).await, asked(&mut two).await);
    // What the agent sent, but for the id, the session and our marks.
    assert_eq!(of_one["params"]["toolCall"], json!({ "toolCallId": "call-1", "title": "run it", "extra": 7 }));
    assert_eq!(of_one["params"]["sessionId"], session);
    let marks = &of_one["params"]["_meta"]["gembridge"];
    assert_eq!((&marks["ask"], marks["expiresAt"].as_u64() > marks["at"].as_u64()), (&json!(1), true));
    assert!(of_one["id"].is_u64() && of_two["id"].is_u64());

    two.send(&selected(&of_two, "yes")).await;
    let resolved = one.named("_gembridge/request_resolved").await;
    assert_eq!((&resolved["params"]["ask"], &resolved["params"]["by"]), (&json!(1), &json!("client")));
    assert_eq!(resolved["params"]["outcome"], json!({ "outcome": "selected", "optionId": "yes" }));
    assert_eq!(resolved["params"]["toolCallId"], "call-1");
    // Whoever has it still before them may close it, also without knowing our own words.
    assert_eq!(one.named("$/cancel_request").await["params"], json!({ "requestId": of_one["id"] }));
    assert_eq!(two.named("_gembridge/request_resolved").await["params"]["by"], "you");
    // Too late: nothing changes, and whoever it was is told.
    one.send(&selected(&of_one, "no")).await;
    let refused = one.named("_gembridge/answer_refused").await;
    assert_eq!(refused["params"]["ask"], 1);
    assert!(refused["params"]["reason"].as_str().unwrap().contains("not open any more"));
    agents.does(0, [text("done"), done()]).await;
    assert_eq!(one.answer(id).await.unwrap()["stopReason"], "end_turn");
    assert_eq!(agents.answers(0), [(AskId(1), Answer::Option("yes".into()))]);
}

#[tokio::test]
async fn a_question_survives_its_client_and_is_put_to_the_next_one() {
    let agents = agents::scripted(|_| vec![asks(7), text("waiting")]);
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "go").await;
    asked(&mut client).await;
    drop(client);
    // Even one that wants to see nothing of what was before.
    let mut back = server.attached(&session, "&limit=0").await;
    let ended = back.named("_gembridge/replay_ended").await;
    assert_eq!(ended["params"]["openRequests"], json!([1]), "the session numbers what its agents ask");
    let again = asked(&mut back).await;
    assert_eq!(again["params"]["_meta"]["gembridge"]["ask"], 1);
    back.send(&selected(&again, "no")).await;
    back.named("_gembridge/request_resolved").await;
    agents.until("an answer", |agents| !agents.answers(0).is_empty()).await;
    assert_eq!(agents.answers(0), [(AskId(7), Answer::Option("no".into()))]);
    // Settled ones are never put again.
    let mut late = server.attached(&session, "").await;
    let messages = late.until(|message| message["method"] == "_gembridge/replay_ended").await;
    assert_eq!(messages.last().unwrap()["params"]["openRequests"], json!([]));
    let resolved = messages.iter().find(|message| message["method"] == "_gembridge/request_resolved").unwrap();
    assert_eq!(resolved["params"]["toolCallId"], "call-1");
    late.call("$/ping", json!({})).await.unwrap();
    assert!(messages.iter().all(|message| message["method"] != "session/request_permission"));
}

#[tokio::test]
async fn s19_a_forged_option_is_refused_and_the_question_is_put_again() {
    let agents = agents::scripted(|_| vec![asks(1)]);
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "go").await;
    let request = asked(&mut client).await;
    client.send(&selected(&request, "sudo")).await;
    let refused = client.named("_gembridge/answer_refused").await;
    assert_eq!(refused["params"]["ask"], 1);
    let again = asked(&mut client).await;
    client.send(&selected(&again, "yes")).await;
    client.named("_gembridge/request_resolved").await;
    agents.until("an answer", |agents| !agents.answers(0).is_empty()).await;
    assert_eq!(agents.answers(0), [(AskId(1), Answer::Option("yes".into()))]);
}

#[tokio::test]
async fn a_client_that_cannot_answer_leaves_it_to_the_others() {
    let agents = agents::scripted(|_| vec![asks(1)]);
    let server = TestServer::new(&agents);
    let mut one = server.client().await;
    let session = one.new_session().await;
    let mut two = server.attached(&session, "").await;
    two.named("_gembridge/replay_ended").await;
    one.prompt(&session, "go").await;
    let (of_one, of_two) = (asked(&mut one).await, asked(&mut two).await);
    let unable = |request: &Value| json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": -32601, "message": "no" } });
    one.send(&unable(&of_one)).await;
    one.call("$/ping", json!({})).await.unwrap();
    two.send(&selected(&of_two, "yes")).await;
    two.named("_gembridge/request_resolved").await;
    agents.until("an answer", |agents| !agents.answers(0).is_empty()).await;
    assert_eq!(agents.answers(0), [(AskId(1), Answer::Option("yes".into()))]);

    // Alone, its refusal is the answer.
    drop(two);
    let agents = agents::scripted(|_| vec![asks(1)]);
    let server = TestServer::new(&agents);
    let mut alone = server.client().await;
    let session = alone.new_session().await;
    alone.prompt(&session, "go").await;
    let request = asked(&mut alone).await;
    alone.send(&unable(&request)).await;
    agents.until("an answer", |agents| !agents.answers(0).is_empty()).await;
    assert_eq!(agents.answers(0), [(AskId(1), Answer::Cancelled)]);
}

#[tokio::test]
async fn a_cancel_settles_the_questions_of_its_turn() {
    let agents = agents::scripted(|_| vec![asks(1)]);
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    let id = client.prompt(&session, "go").await;
    asked(&mut client).await;
    client.notify("session/cancel", json!({ "sessionId": session })).await;
    let resolved = client.named("_gembridge/request_resolved").await;
    assert_eq!(
        (&resolved["params"]["by"], &resolved["params"]["outcome"]["outcome"]),
        (&json!("cancel"), &json!("cancelled"))
    );
    assert_eq!(client.answer(id).await.unwrap()["stopReason"], "cancelled");
}

#[tokio::test]
async fn with_nobody_attached_policy_decides_and_time_does() {
    let limits = Limits { answer_alone: Duration::from_millis(50), ..Limits::default() };
    let agents = agents::scripted(|_| vec![asks(1)]);
    let server = TestServer::with(&agents, ServerSetup { limits, ..ServerSetup::default() });
    let handle = server.foreign_session("ann").await;
    server.prompt(&handle, "go").await;
    agents.until("the automatic answer", |agents| !agents.answers(0).is_empty()).await;
    assert_eq!(agents.answers(0), [(AskId(1), Answer::Option("no".into()))]);

    let agents = agents::scripted(|_| vec![asks(1)]);
    let server = TestServer::with(
        &agents,
        ServerSetup { policy: PermissionPolicy::ask_if_attended(), ..ServerSetup::default() },
    );
    let handle = server.foreign_session("ann").await;
    server.prompt(&handle, "go").await;
    agents.until("a refusal at once", |agents| !agents.answers(0).is_empty()).await;
    // The same with somebody there is asked.
    let mut client = server.attached(&handle.id().to_string(), "").await;
    client.named("_gembridge/replay_ended").await;
    agents.does(0, [done()]).await;
    client.named("_gembridge/turn_ended").await;
    client.prompt(&handle.id().to_string(), "again").await;
    let request = asked(&mut client).await;
    client.send(&selected(&request, "yes")).await;
    agents.until("a second answer", |agents| agents.answers(0).len() == 2).await;
    assert_eq!(agents.answers(0).last(), Some(&(AskId(1), Answer::Option("yes".into()))));
}

#[tokio::test]
async fn an_answer_that_says_nothing_is_refused_and_the_question_is_put_again() {
    let agents = agents::scripted(|_| vec![asks(1)]);
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "go").await;
    let request = asked(&mut client).await;
    client.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": {} })).await;
    client.named("_gembridge/answer_refused").await;
    let again = asked(&mut client).await;
    assert_ne!(again["id"], request["id"]);
    client.send(&selected(&again, "yes")).await;
    client.named("_gembridge/request_resolved").await;
}
