//! Tools of the client: functions, custom tools, namespaces, and those that nobody runs here.

use gembridge_core::test_support::{ScriptedAgents, done, text};
use serde_json::{Value, json};

use super::support::{asking, call_of, create, response, text_of};
use crate::openai::support::server::TestServer;
use crate::openai::support::tools::FakeTools;

fn function(name: &str) -> Value {
    json!({ "type": "function", "name": name, "parameters": { "type": "object" } })
}

/// Asks with these tools; the agent calls the one that it knows under this name. The call as the client sees it, and what
/// the agent gets for it once the client has sent its result in the given form.
async fn round(fields: Value, known_as: &str, arguments: Value, answered: impl Fn(&Value, &Value) -> Value) -> Value {
    let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let first = asking("go", fields.clone());
    let (first, waiting) = tokio::join!(response(&server, &first), async {
        agents.until_prompted(0).await;
        tools.call(0, known_as, &arguments).await
    });
    assert_eq!(first["status"], "completed");
    let called = call_of(&first);
    let mut second = answered(&first, &called);
    second.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let (second, ()) = tokio::join!(response(&server, &second), async {
        assert_eq!(waiting.text().await, "done");
        agents.does(0, [text("good"), done()]).await;
    });
    assert_eq!(text_of(&second), "good");
    assert_eq!(agents.prompts(0), ["go"], "nothing was told twice");
    called
}

fn output(called: &Value) -> Value {
    let kind = format!("{}_output", called["type"].as_str().unwrap());
    json!({ "type": kind, "call_id": called["call_id"], "output": "done" })
}

/// The result alone, which finds the turn by the id of its call.
fn alone(_: &Value, called: &Value) -> Value {
    asking(json!([output(called)]), json!({}))
}

fn after_the_response(first: &Value, called: &Value) -> Value {
    asking(json!([output(called)]), json!({ "previous_response_id": first["id"] }))
}

fn with_the_history(first: &Value, called: &Value) -> Value {
    let mut items = vec![json!({ "role": "user", "content": "go" })];
    items.extend(first["output"].as_array().unwrap().iter().cloned());
    items.push(output(called));
    asking(items, json!({}))
}

#[tokio::test]
async fn a_parked_turn_is_found_by_the_result_alone_after_a_response_and_by_the_whole_history() {
    for answered in [alone, after_the_response, with_the_history] {
        let called = round(json!({ "tools": [function("look")] }), "look", json!({ "at": 1 }), answered).await;
        assert_eq!((&called["type"], &called["name"]), (&json!("function_call"), &json!("look")));
        assert_eq!(called["arguments"], r#"{"at":1}"#);
    }
}

#[tokio::test]
async fn a_custom_tool_is_called_with_text() {
    let tools = json!([{ "type": "custom", "name": "patch", "format": { "type": "grammar", "syntax": "lark" } }]);
    for answered in [alone, after_the_response, with_the_history] {
        let fields = json!({ "tools": tools });
        let called = round(fields, "patch", json!({ "input": "*** \"a\"\n" }), answered).await;
        assert_eq!((&called["type"], &called["input"]), (&json!("custom_tool_call"), &json!("*** \"a\"\n")));
    }
}

#[tokio::test]
async fn a_namespace_comes_back_also_from_tools_in_an_item() {
    let namespace = json!({ "type": "namespace", "name": "files", "tools": [function("read")] });
    let called = round(json!({ "tools": [namespace] }), "files__read", json!({}), alone).await;
    assert_eq!((&called["name"], &called["namespace"]), (&json!("read"), &json!("files")));

    let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let item = json!({ "type": "additional_tools", "role": "developer", "tools": [namespace] });
    let asked = asking(json!([item, { "role": "user", "content": "go" }]), json!({}));
    let (first, _waiting) = tokio::join!(response(&server, &asked), async {
        agents.until_prompted(0).await;
        tools.call(0, "files__read", &json!({})).await
    });
    assert_eq!(call_of(&first)["namespace"], "files");
}

#[tokio::test]
async fn tools_that_nobody_runs_here_are_left_out_and_named() {
    let (agents, tools) = (ScriptedAgents::new(|_| vec![vec![text("a"), done()]]), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let offered = json!([{ "type": "web_search" }, function("look"), { "type": "tool_search", "execution": "client" }]);
    let answer = create(&server, &asking("go", json!({ "tools": offered, "temperature": 0 }))).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let ignored = answer.header("x-gembridge-ignored");
    assert_eq!(ignored, Some("tools.web_search, tools.execution, tools.tool_search, temperature"));
    let forced = json!({ "tools": offered, "tool_choice": { "type": "web_search" } });
    assert_eq!(create(&server, &asking("go", forced)).await.error().2, "tool_choice.type");
}

#[tokio::test]
async fn choices_are_checked_against_the_tools() {
    let (agents, tools) = (ScriptedAgents::new(|_| vec![vec![text("a"), done()]]), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    for (choice, place) in [
        (json!("required"), Some("tool_choice")),
        (json!("any"), Some("tool_choice")),
        (json!({ "type": "function", "name": "look" }), Some("tool_choice.name")),
        (json!({ "type": "allowed_tools", "mode": "never", "tools": [] }), Some("tool_choice.mode")),
        (json!("none"), None),
        (json!("auto"), None),
    ] {
        let answer = create(&server, &asking("go", json!({ "tool_choice": choice }))).await;
        match place {
            Some(place) => assert_eq!(answer.error(), (400, "invalid_request_error".into(), place.into())),
            None => assert_eq!((answer.status, &answer.json()["tool_choice"]), (200, &choice)),
        }
    }
}
