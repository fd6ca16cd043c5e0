//! Requests that cannot be honoured, by the field that is wrong, and answers that fail.

use gembridge_core::driver::Signal;
use gembridge_core::test_support::{ScriptedAgents, crashed, done, text};
use serde_json::{Value, json};

use super::support::{asking, create, events};
use crate::openai::support::http::post;
use crate::openai::support::server::TestServer;

#[tokio::test]
async fn what_is_wrong_is_named() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a"), done()]]);
    let server = TestServer::new(&agents).await;
    let item = |item: Value| json!([item]);
    let part = |part: Value| json!([{ "role": "user", "content": [part] }]);
    for (input, place) in [
        (json!([]), "input"),
        (json!(" "), "input"),
        (item(json!({ "content": "x" })), "input[0].role"),
        (item(json!({ "role": "user" })), "input[0].content"),
        (item(json!({ "type": "computer_call" })), "input[0].type"),
        (item(json!({ "type": "item_reference", "id": "msg_1" })), "input[0].id"),
        (item(json!({ "type": "compaction", "encrypted_content": "x" })), "input[0].encrypted_content"),
        (item(json!({ "type": "function_call_output", "output": "x" })), "input[0].call_id"),
        (item(json!({ "type": "function_call_output", "call_id": "call_1", "output": "x" })), "input[0].call_id"),
        (part(json!({ "type": "input_image", "image_url": "https://x.test/a.png" })), "input[0].content[0].image_url"),
        (part(json!({ "type": "input_image", "file_id": "file_1" })), "input[0].content[0].file_id"),
        (part(json!({ "type": "input_audio" })), "input[0].content[0].type"),
        (json!(1), "input"),
    ] {
        let answer = create(&server, &asking(input.clone(), json!({}))).await;
        assert_eq!(answer.error(), (400, "invalid_request_error".into(), place.into()), "{input}: {}", answer.body);
    }
    for (fields, place) in [
        (json!({ "model": "" }), "model"),
        (json!({ "prompt": { "id": "p" } }), "prompt"),
        (json!({ "max_output_tokens": 0 }), "max_output_tokens"),
        (json!({ "metadata": { "a": 1 } }), "metadata"),
        (json!({ "text": { "format": { "type": "xml" } } }), "text.format.type"),
        (json!({ "text": { "format": { "type": "json_schema", "name": "a" } } }), "text.format.schema"),
        (json!({ "tools": [{ "name": "a" }] }), "tools[0].type"),
        (json!({ "tools": [{ "type": "function", "name": "a b" }] }), "tools[0].name"),
        (json!({ "stream": "yes" }), "stream"),
    ] {
        let answer = create(&server, &asking("hi", fields.clone())).await;
        assert_eq!(answer.error(), (400, "invalid_request_error".into(), place.into()), "{fields}: {}", answer.body);
    }
    for nonsense in ["x".repeat(64 << 10), "[".repeat(64 << 10), String::new()] {
        let answer = post(server.address, "/v1/responses", &[], nonsense).await.whole().await;
        assert_eq!(answer.status, 400, "{}", answer.body);
    }
    assert_eq!(agents.opened(), 0, "no agent was asked");
}

#[tokio::test]
async fn an_agent_that_fails_after_it_has_begun_is_not_asked_again() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("half"), Signal::Lost(crashed("the agent died"))]]);
    let server = TestServer::new(&agents).await;
    let whole = create(&server, &asking("hi", json!({}))).await;
    assert_eq!((whole.status, whole.header("x-should-retry")), (502, Some("false")));
    let stream = create(&server, &asking("hi", json!({ "stream": true }))).await;
    let last = events(&stream.body).pop().expect("an event");
    assert_eq!((&last["type"], &last["response"]["status"]), (&json!("response.failed"), &json!("failed")));
    assert_eq!(last["response"]["error"]["code"], "invalid_prompt");
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], "half");
    assert_eq!(last["response"]["output"][0]["status"], "incomplete");
}
