//! Prompts and their answers: to whom each goes, and in which order.

use gembridge_core::driver::Signal;
use gembridge_core::model::{Failure, FailureKind, Usage};
use serde_json::{Value, json};

use crate::acp::support::agents::{self, Order};
use crate::acp::support::client::{said, seqs};
use crate::acp::support::server::{BOB, ServerSetup, TestServer};
use crate::acp::support::{done, done_with, text};

#[tokio::test]
async fn a_prompt_streams_its_answer_and_ends_with_its_result() {
    let usage = Usage { input: Some(3), output: Some(5), ..Usage::default() };
    let agents = agents::scripted(move |_| vec![text("Hel"), text("lo"), done_with(usage)]);
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    let id = client.prompt(&session, "hi").await;
    let messages = client.until(|message| message["id"] == id).await;
    assert_eq!(said(&messages), "Hello");
    assert!(messages.iter().all(|message| message["params"]["update"]["sessionUpdate"] != "user_message_chunk"));
    let result = &messages.last().unwrap()["result"];
    assert_eq!(result["stopReason"], "end_turn");
    assert_eq!(result["usage"], json!({ "totalTokens": 8, "inputTokens": 3, "outputTokens": 5 }));
    let named = |method: &str| messages.iter().filter(|message| message["method"] == method).collect::<Vec<_>>();
    assert_eq!(named("_gembridge/turn_started")[0]["params"]["byYou"], true);
    let ended = &named("_gembridge/turn_ended")[0]["params"];
    assert_eq!((&ended["outcome"], &ended["stopReason"]), (&json!("finished"), &json!("end_turn")));
    // Everything but the prompt itself, which is not said back to whoever said it.
    assert_eq!(seqs(&messages), [2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn others_see_the_prompt_and_only_its_sender_gets_the_answer_under_its_own_id() {
    let server = TestServer::new(&agents::echo());
    let mut one = server.client().await;
    let session = one.new_session().await;
    let mut two = server.attached(&session, "").await;
    two.named("_gembridge/replay_ended").await;
    // Both use the same ids.
    let id = one.prompt(&session, "mine").await;
    let of_one = one.until(|message| message["id"] == id).await;
    let of_two = two.until(|message| message["method"] == "_gembridge/turn_ended").await;
    assert_eq!((said(&of_one), said(&of_two)), ("you said mine".into(), "you said mine".into()));
    let prompt: Vec<&Value> = of_two
        .iter()
        .map(|message| &message["params"]["update"])
        .filter(|update| update["sessionUpdate"] == "user_message_chunk")
        .collect();
    assert_eq!(prompt.len(), 1);
    assert_eq!(prompt[0]["content"], json!({ "type": "text", "text": "mine" }));
    assert!(of_two.iter().all(|message| message.get("result").is_none()));
    let started = of_two.iter().find(|message| message["method"] == "_gembridge/turn_started").unwrap();
    assert_eq!(started["params"]["byYou"], false);
}

#[tokio::test]
async fn a_prompt_on_a_busy_session_waits_and_its_client_is_told() {
    let agents = agents::silent();
    let server = TestServer::new(&agents);
    let mut one = server.client().await;
    let session = one.new_session().await;
    let mut two = server.client().await;
    two.call("session/resume", json!({ "sessionId": session, "cwd": "/" })).await.unwrap();
    let first = one.prompt(&session, "first").await;
    agents.until_prompts(0, 1).await;
    let second = two.prompt(&session, "second").await;
    let queued = two.named("_gembridge/queued").await;
    assert_eq!((&queued["params"]["turn"], &queued["params"]["ahead"]), (&json!(2), &json!(1)));
    agents.does(0, [text("a"), done()]).await;
    assert_eq!(one.answer(first).await.unwrap()["stopReason"], "end_turn");
    agents.until_prompts(0, 2).await;
    agents.does(0, [text("b"), done()]).await;
    assert_eq!(two.answer(second).await.unwrap()["stopReason"], "end_turn");
    assert_eq!(agents.prompts(0), ["first", "second"]);
}

#[tokio::test]
async fn prompts_of_one_client_go_in_as_they_came() {
    let server = TestServer::with(&agents::echo(), ServerSetup { turns: 1, ..ServerSetup::default() });
    let mut client = server.client().await;
    let session = client.new_session().await;
    let mut ids = Vec::new();
    for number in 0..10 {
        ids.push(client.prompt(&session, &format!("n{number}")).await);
    }
    let mut answered = Vec::new();
    for _ in &ids {
        let answer = client.find(|message| message.get("result").is_some()).await;
        answered.push(answer["id"].as_u64().unwrap());
    }
    assert_eq!(answered, ids);
}

#[tokio::test]
async fn r26_four_busy_sessions_with_full_queues_keep_no_other_key_waiting() {
    let agents = agents::silent();
    let server = TestServer::with(&agents, ServerSetup { turns: 5, ..ServerSetup::default() });
    let mut greedy = server.client().await;
    for agent in 0..4 {
        let session = greedy.new_session().await;
        greedy.prompt(&session, "long").await;
        agents.until("a prompt", |agents| agents.opened() > agent && !agents.prompts(agent).is_empty()).await;
        for _ in 0..16 {
            greedy.prompt(&session, "next").await;
            greedy.named("_gembridge/queued").await;
        }
    }
    let mut other = server.connect_as(BOB, "/acp").await;
    other.initialize().await;
    let session = other.new_session().await;
    other.prompt(&session, "mine").await;
    other.named("_gembridge/turn_started").await;
    assert_eq!(agents.prompts(4), ["mine"]);
}

#[tokio::test]
async fn cancel_ends_the_turn_once_and_the_session_goes_on() {
    let agents = agents::scripted(|prompt| if prompt == "wait" { Vec::new() } else { vec![text("fine"), done()] });
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    // Nothing runs: nothing happens.
    client.notify("session/cancel", json!({ "sessionId": session })).await;
    for _ in 0..3 {
        let id = client.prompt(&session, "wait").await;
        client.named("_gembridge/turn_started").await;
        client.notify("session/cancel", json!({ "sessionId": session })).await;
        client.notify("session/cancel", json!({ "sessionId": session })).await;
        assert_eq!(client.answer(id).await.unwrap()["stopReason"], "cancelled");
        let id = client.prompt(&session, "more").await;
        assert_eq!(client.answer(id).await.unwrap()["stopReason"], "end_turn");
    }
}

#[tokio::test]
async fn a_cancel_right_behind_its_prompt_cancels_it_wherever_it_is() {
    let server = TestServer::with(&agents::silent(), ServerSetup { turns: 1, ..ServerSetup::default() });
    let mut client = server.client().await;
    let session = client.new_session().await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(client.prompt(&session, "wait").await);
    }
    client.notify("session/cancel", json!({ "sessionId": session })).await;
    for id in ids {
        assert_eq!(client.answer(id).await.unwrap()["stopReason"], "cancelled");
    }
}

#[tokio::test]
async fn a_single_request_is_cancelled_by_its_id() {
    let agents = agents::silent();
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    let first = client.prompt(&session, "first").await;
    client.named("_gembridge/turn_started").await;
    let second = client.prompt(&session, "second").await;
    client.named("_gembridge/queued").await;
    client.notify("$/cancel_request", json!({ "requestId": second })).await;
    assert_eq!(client.answer(second).await.unwrap()["stopReason"], "cancelled");
    agents.does(0, [done()]).await;
    assert_eq!(client.answer(first).await.unwrap()["stopReason"], "end_turn");
}

#[tokio::test]
async fn a_watcher_may_cancel_a_turn_that_another_face_began() {
    let agents = agents::silent();
    let server = TestServer::new(&agents);
    let handle = server.foreign_session("ann").await;
    server.prompt(&handle, "from elsewhere").await;
    agents.until_prompts(0, 1).await;
    let mut client = server.attached(&handle.id().to_string(), "").await;
    let ended = client.named("_gembridge/replay_ended").await;
    assert_eq!(ended["params"]["turn"], json!({ "state": "running", "id": 1 }));
    client.notify("session/cancel", json!({ "sessionId": handle.id().to_string() })).await;
    let ended = client.named("_gembridge/turn_ended").await;
    assert_eq!(ended["params"]["outcome"], "cancelled");
}

#[tokio::test]
async fn a_turn_goes_on_without_its_client_and_is_found_again() {
    let agents = agents::silent();
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "long").await;
    agents.until_prompts(0, 1).await;
    drop(client);
    agents.does(0, [text("while "), text("away"), done()]).await;
    let mut back = server.attached(&session, "").await;
    let messages = back.until(|message| message["method"] == "_gembridge/turn_ended").await;
    assert_eq!(said(&messages), "while away");
    assert!(!agents.orders(0).contains(&Order::Cancel));
}

#[tokio::test]
async fn an_agent_that_fails_ends_the_request_with_an_error_that_says_why() {
    let agents = agents::scripted(|_| {
        vec![text("half"), Signal::Failed(Failure::new(FailureKind::Refused { code: 429 }, "too much"))]
    });
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    let id = client.prompt(&session, "hi").await;
    let error = client.answer(id).await.unwrap_err();
    assert_eq!((&error["code"], &error["message"]), (&json!(429), &json!("too much")));
    let ended = client.named("_gembridge/turn_ended").await;
    assert_eq!(
        (&ended["params"]["outcome"], &ended["params"]["error"]["message"]),
        (&json!("interrupted"), &json!("too much"))
    );
    agents.refuse_next(Failure::new(FailureKind::NeedsLogin, "log in first"));
    let error = client.call("session/new", json!({ "cwd": "/", "mcpServers": [] })).await.unwrap_err();
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32000), &json!("auth_required")));
}

#[tokio::test]
async fn the_tap_sees_every_message_in_both_directions() {
    let server = TestServer::new(&agents::echo());
    let mut client = server.client().await;
    let session = client.new_session().await;
    let id = client.prompt(&session, "hi").await;
    let received = client.until(|message| message["id"] == id).await.len();
    let tapped = server.tapped.0.lock().unwrap();
    let of = |kind: &str| tapped.iter().filter(|(found, ..)| found == kind).collect::<Vec<_>>();
    assert_eq!(of("client:message").len(), 3);
    // The answers to `initialize` and `session/new` came before.
    assert_eq!(of("agent:message").len(), received + 2);
    let prompt = of("client:message")[2];
    assert_eq!(prompt.1.as_deref(), Some(session.as_str()));
    assert!(prompt.2.contains("session/prompt"));
}
