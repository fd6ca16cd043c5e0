//! Frames of the agent come through as they are, and what has no frame is said in the protocol's words.

use gembridge_core::driver::{Signal, Update};
use gembridge_core::model::{Event, PlanEntry, PlanPriority, PlanStatus, ToolCall, ToolCallId, ToolStatus};
use serde_json::{Value, json};

use crate::acp::support::agents;
use crate::acp::support::server::TestServer;
use crate::acp::support::{done, framed};

#[tokio::test]
async fn unknown_kinds_and_unknown_members_reach_the_client_unchanged() {
    let update = json!({
        "zeta": [1, { "deep": null }], "sessionUpdate": "hologram", "alpha": 1.5e300, "text": "a\"}\u{7f}é",
    });
    let frame = json!({
        "extra": "around", "method": "session/update", "jsonrpc": "2.0",
        "params": { "unknown": true, "update": update, "sessionId": "theirs", "_meta": { "vendor": { "x": 1 } } },
    });
    let extension = json!({ "jsonrpc": "2.0", "method": "_vendor/note", "params": { "sessionId": "theirs", "n": 1 } });
    let (first, second) = (frame.to_string(), extension.to_string());
    let agents = agents::scripted(move |_| {
        vec![
            framed(Event::Other { kind: "hologram".into() }, &first),
            framed(Event::Other { kind: "_vendor/note".into() }, &second),
            done(),
        ]
    });
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "show").await;
    let mut seen = client.find(|message| message["extra"] == "around").await;
    let marks = seen["params"]["_meta"].as_object_mut().unwrap().remove("gembridge").unwrap();
    assert_eq!((&marks["seq"], &marks["turn"], marks["at"].is_u64()), (&json!(3), &json!(1), true));
    assert_eq!(seen["params"]["sessionId"], session);
    seen["params"]["sessionId"] = json!("theirs");
    assert_eq!(seen.to_string(), frame.to_string(), "the order of the members too");
    let note = client.named("_vendor/note").await;
    assert_eq!((&note["params"]["n"], &note["params"]["sessionId"]), (&json!(1), &json!(session)));
}

#[tokio::test]
async fn what_no_frame_stands_for_is_said_in_the_protocols_words() {
    let plan = vec![PlanEntry { content: "do".into(), priority: PlanPriority::High, status: PlanStatus::InProgress }];
    let call = ToolCall {
        title: Some("look".into()),
        status: Some(ToolStatus::Pending),
        ..ToolCall::update(ToolCallId::new("c"))
    };
    let over = ToolCall { status: Some(ToolStatus::Failed), ..ToolCall::update(ToolCallId::new("c")) };
    let events = [
        Event::Text("plain".into()),
        Event::Thought("hm".into()),
        Event::ToolCall(Box::new(call)),
        Event::ToolCall(Box::new(over)),
        Event::Plan(plan),
        Event::Mode("plan".into()),
        Event::Title("a title".into()),
        Event::Context { used: 1, size: 2 },
    ];
    let agents = agents::scripted(move |_| {
        let updates = events.iter().cloned().map(|event| Signal::Update(Update::ours(event)));
        updates.chain([done()]).collect()
    });
    let server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    let id = client.prompt(&session, "show").await;
    let messages = client.until(|message| message["id"] == id).await;
    let updates: Vec<&Value> =
        messages.iter().map(|message| &message["params"]["update"]).filter(|update| !update.is_null()).collect();
    let expected = [
        json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "plain" } }),
        json!({ "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": "hm" } }),
        json!({ "toolCallId": "c", "title": "look", "status": "pending", "sessionUpdate": "tool_call" }),
        json!({ "toolCallId": "c", "status": "failed", "sessionUpdate": "tool_call_update" }),
        json!({ "sessionUpdate": "plan", "entries": [{ "content": "do", "priority": "high", "status": "in_progress" }] }),
        json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan" }),
        json!({ "sessionUpdate": "session_info_update", "title": "a title" }),
        json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2 }),
    ];
    assert_eq!(updates, expected.iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_prompt_of_several_blocks_is_shown_block_by_block() {
    let server = TestServer::new(&agents::echo());
    let mut one = server.client().await;
    let session = one.new_session().await;
    let blocks = json!([
        { "type": "text", "text": "look" },
        { "type": "image", "mimeType": "image/png", "data": "AA==" },
        { "type": "resource_link", "uri": "file:///x", "name": "x" },
        { "type": "resource", "resource": { "uri": "file:///y", "text": "y" } },
        { "type": "hologram", "depth": 3 },
    ]);
    let id = one.request("session/prompt", json!({ "sessionId": session, "prompt": blocks })).await;
    one.answer(id).await.unwrap();
    let mut two = server.attached(&session, "").await;
    let messages = two.until(|message| message["method"] == "_gembridge/replay_ended").await;
    let shown: Vec<_> = messages
        .iter()
        .filter(|message| message["params"]["update"]["sessionUpdate"] == "user_message_chunk")
        .collect();
    let contents: Vec<_> = shown.iter().map(|message| message["params"]["update"]["content"].clone()).collect();
    assert_eq!(json!(contents), blocks);
    let marks: Vec<_> = shown.iter().map(|message| &message["params"]["_meta"]["gembridge"]).collect();
    assert!(marks.iter().all(|marks| marks["seq"] == 1 && marks["parts"] == 5));
    assert_eq!((&marks[0]["part"], &marks[4]["part"]), (&json!(1), &json!(5)));
}
