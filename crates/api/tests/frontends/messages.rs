//! What is the Messages API's own: threads, results that failed, system messages in between, and signs of life.

use std::sync::Arc;
use std::time::Duration;

use gembridge_api::dialect::DialectConfig;
use gembridge_core::model::ReturnOutcome;
use gembridge_core::test_support::{ScriptedAgents, done, text};
use serde_json::{Value, json};

use crate::openai::support::http::{Answer, get_with, post};
use crate::openai::support::server::{ServerSetup, TestServer};
use crate::openai::support::tools::{FakeTools, Waiting};

async fn ask(server: &TestServer, fields: Value) -> Answer {
    let mut request = json!({ "model": "played", "max_tokens": 1000 });
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    post(server.address, "/v1/messages", &[], request.to_string()).await.whole().await
}

fn weather() -> Value {
    json!([{ "name": "weather", "input_schema": { "type": "object" } }])
}

/// An answer that called a tool, and the call that waits.
async fn called(
    server: &TestServer,
    agents: &ScriptedAgents,
    tools: &FakeTools,
    thread: Value,
) -> (Answer, Value, Waiting) {
    let said = json!([{ "role": "user", "content": "how is Paris?" }]);
    let first = json!({ "messages": said, "tools": weather(), "thread": thread });
    let (answer, waiting) = tokio::join!(ask(server, first), async {
        agents.until_prompted(0).await;
        tools.call(0, "weather", &json!({ "city": "Paris" })).await
    });
    let message = answer.json();
    assert_eq!(message["stop_reason"], "tool_use", "{}", answer.body);
    (answer, message, waiting)
}

fn result(message: &Value, said: &str) -> Value {
    let id = &message["content"][0]["id"];
    json!([{ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id, "content": said }] }])
}

#[tokio::test]
async fn a_thread_goes_on_with_nothing_but_the_result_of_a_call() {
    let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let (first, message, waiting) = called(&server, &agents, &tools, json!({ "type": "create" })).await;
    let thread = json!({ "type": "continue", "previous_message_id": message["id"] });
    let second = json!({ "messages": result(&message, "sunny"), "thread": thread });
    let (second, ()) = tokio::join!(ask(&server, second), async {
        assert_eq!(waiting.text().await, "sunny");
        agents.does(0, [text("It is sunny."), done()]).await;
    });
    assert_eq!(second.json()["content"], json!([{ "type": "text", "text": "It is sunny." }]), "{}", second.body);
    assert_eq!(second.header("x-session-id"), first.header("x-session-id"));
    assert_eq!(tools.offered(0), ["weather"], "the tools of the thread are offered on");
    assert_eq!(agents.prompts(0), ["how is Paris?"], "nothing was told twice");
}

#[tokio::test]
async fn words_are_said_to_a_thread_once() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a"), done()]]);
    let server = TestServer::new(&agents).await;
    let said = |word: &str| json!([{ "role": "user", "content": word }]);
    let first = ask(&server, json!({ "messages": said("one"), "thread": { "type": "create" } })).await.json();
    let thread = json!({ "type": "continue", "previous_message_id": first["id"] });
    let second = ask(&server, json!({ "messages": said("two"), "thread": thread })).await;
    assert_eq!(second.status, 200, "{}", second.body);
    assert_eq!(agents.prompts(0), ["one", "two"], "the session has the rest");
    let again = ask(&server, json!({ "messages": said("two"), "thread": thread })).await;
    let code = |answer: &Answer| answer.json()["error"]["details"]["error_code"].clone();
    assert_eq!((again.status, code(&again)), (400, json!("thread_already_continued")));
    let third = json!({ "type": "continue", "previous_message_id": second.json()["id"] });
    assert_eq!(ask(&server, json!({ "messages": said("three"), "thread": third })).await.status, 200);
    assert_eq!(agents.prompts(0), ["one", "two", "three"]);
    let nobody = json!({ "type": "continue", "previous_message_id": "msg_nobody" });
    let unknown = ask(&server, json!({ "messages": said("x"), "thread": nobody })).await;
    assert_eq!((unknown.status, code(&unknown)), (404, json!("thread_not_found")));
}

#[tokio::test]
async fn a_result_that_failed_is_told_as_failed() {
    let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let (_, message, waiting) = called(&server, &agents, &tools, Value::Null).await;
    let mut messages = json!([
        { "role": "user", "content": "how is Paris?" },
        { "role": "assistant", "content": message["content"] },
    ]);
    let mut failed = result(&message, "no network")[0].clone();
    failed["content"][0]["is_error"] = json!(true);
    messages.as_array_mut().unwrap().push(failed);
    let (second, ()) = tokio::join!(ask(&server, json!({ "messages": messages, "tools": weather() })), async {
        let result = waiting.result().await;
        assert_eq!(result.outcome, ReturnOutcome::Failed);
        agents.does(0, [text("I do not know."), done()]).await;
    });
    assert_eq!(second.json()["content"][0]["text"], "I do not know.");
}

#[tokio::test]
async fn results_that_are_sent_again_get_the_same_answer_again() {
    let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let (_, message, waiting) = called(&server, &agents, &tools, Value::Null).await;
    let messages = json!([
        { "role": "user", "content": "how is Paris?" },
        { "role": "assistant", "content": message["content"] },
        result(&message, "sunny")[0],
    ]);
    let second = json!({ "messages": messages, "tools": weather() });
    let (once, ()) = tokio::join!(ask(&server, second.clone()), async {
        assert_eq!(waiting.text().await, "sunny");
        agents.does(0, [text("It is sunny."), done()]).await;
    });
    let again = ask(&server, second).await;
    assert_eq!(again.json()["content"], once.json()["content"], "{}", again.body);
    assert_eq!(agents.prompts(0), ["how is Paris?"], "the turn ran once");
}

#[tokio::test]
async fn a_history_that_is_written_otherwise_is_the_same_history() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a"), done()]]);
    let server = TestServer::new(&agents).await;
    let billing =
        |mark: &str| json!({ "type": "text", "text": format!("x-anthropic-billing-header: cc_version={mark};") });
    let brief = |cached: bool| {
        let mut block = json!({ "type": "text", "text": "be brief" });
        if cached {
            block["cache_control"] = json!({ "type": "ephemeral" });
        }
        block
    };
    let first = json!({
        "system": [billing("1"), brief(true)],
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "one", "cache_control": { "type": "ephemeral" } }] },
            { "role": "system", "content": [{ "type": "text", "text": "it is Monday" }] },
        ],
    });
    assert_eq!(ask(&server, first).await.status, 200);
    let told = agents.prompts(0)[0].clone();
    assert!(told.contains("be brief") && told.contains("it is Monday") && !told.contains("billing"), "{told}");
    let second = json!({
        "system": [billing("2"), brief(false)],
        "messages": [
            { "role": "user", "content": "one" },
            { "role": "system", "content": "it is Monday" },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": "x" }, { "type": "text", "text": "a" },
            ] },
            { "role": "user", "content": "two" },
        ],
    });
    assert_eq!(ask(&server, second).await.status, 200);
    assert_eq!(agents.prompts(0)[1..], ["two"], "the agent hears what is new");
}

#[tokio::test]
async fn a_stream_in_which_nothing_is_said_pings() {
    let agents = ScriptedAgents::new(|_| vec![]);
    let config = DialectConfig { first_sign: Duration::ZERO, keep_alive: Duration::from_millis(10) };
    let server = TestServer::with(&[("played", &agents)], ServerSetup { config, ..ServerSetup::default() }).await;
    let request = json!({ "model": "played", "max_tokens": 9, "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    let mut stream = post(server.address, "/v1/messages", &[], request.to_string()).await;
    stream.until("event: ping\ndata: {\"type\":\"ping\"}\n\n").await;
    agents.does(0, [text("a"), done()]).await;
    assert!(stream.whole().await.body.contains("message_stop"));
}

#[tokio::test]
async fn models_have_names_that_its_clients_look_for() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a"), done()]]);
    let server = TestServer::new(&agents).await;
    let listed = get_with(server.address, "/v1/models?limit=1000", &[("anthropic-version", "2023-06-01")]).await.json();
    let ids: Vec<&Value> = listed["data"].as_array().unwrap().iter().map(|entry| &entry["id"]).collect();
    assert_eq!(ids, ["played", "anthropic/played"]);
    let said = json!([{ "role": "user", "content": "hi" }]);
    let answer = ask(&server, json!({ "model": "anthropic/played", "messages": said })).await;
    assert_eq!((answer.status, answer.header("x-gembridge-model-fallback")), (200, None));
}

#[tokio::test]
async fn tokens_are_counted_without_a_turn() {
    let agents = ScriptedAgents::new(|_| vec![]);
    let server = TestServer::new(&agents).await;
    let request = json!({ "model": "played", "messages": [{ "role": "user", "content": "four" }], "tools": weather() });
    let counted = post(server.address, "/v1/messages/count_tokens", &[], request.to_string()).await.whole().await;
    assert_eq!((counted.status, counted.body.as_str()), (200, r#"{"input_tokens":7}"#));
    assert_eq!(agents.opened(), 0);
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_in_the_dialects_envelope() {
    let agents = ScriptedAgents::new(|_| vec![]);
    let server = TestServer::new(&agents).await;
    let said = json!([{ "role": "user", "content": "hi" }]);
    let with = |field: &str, value: Value| {
        let mut request = json!({ "model": "played", "max_tokens": 9, "messages": said });
        request[field] = value;
        request.to_string()
    };
    let unknown = json!([{ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "toolu_1" }] }]);
    for (body, named) in [
        ("x".repeat(64 << 10), "not a request"),
        (with("messages", json!([])), "messages"),
        (with("messages", json!([{ "role": "robot", "content": "" }])), "messages[0].role"),
        (with("messages", json!([{ "role": "user", "content": [{ "type": "hologram" }] }])), "hologram"),
        (with("messages", unknown), "toolu_1"),
        (with("max_tokens", json!(0)), "max_tokens"),
        (with("max_tokens", json!("many")), "max_tokens"),
        (with("tools", json!([{ "type": "bash_20250124", "name": "bash" }])), "bash_20250124"),
        (with("tools", json!([{ "name": "x".repeat(129) }])), "at most 128"),
        (with("tool_choice", json!({ "type": "any" })), "tool_choice"),
        (with("tool_choice", json!({ "type": "tool", "name": "x" })), "tool_choice"),
        (with("output_config", json!({ "format": { "type": "xml" } })), "output_config.format.type"),
        (with("thread", json!({ "type": "fork" })), "thread.type"),
        (with("model", json!("")), "model"),
    ] {
        let refused = post(server.address, "/v1/messages", &[], body.clone()).await.whole().await;
        assert_eq!(refused.status, 400, "{}", refused.body);
        let error = refused.json();
        assert_eq!((&error["type"], &error["error"]["type"]), (&json!("error"), &json!("invalid_request_error")));
        assert!(error["error"]["message"].as_str().unwrap().contains(named), "{error}");
        assert_eq!(refused.header("request-id"), error["request_id"].as_str());
    }
    assert_eq!(agents.opened(), 0);
}

#[tokio::test]
async fn what_has_no_effect_is_named() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a"), done()]]);
    let tools = FakeTools::new();
    let server = TestServer::with_tools(&agents, &Arc::clone(&tools)).await;
    let answer = ask(
        &server,
        json!({
            "messages": [{ "role": "user", "content": "hi" }], "temperature": 1, "container": null, "metadata": { "user_id": "x" },
            "tools": [{ "type": "web_search_20250305", "name": "web_search" }, weather()[0], { "name": "x".repeat(128) }],
        }),
    )
    .await;
    assert_eq!(answer.header("x-gembridge-ignored"), Some("tools.web_search_20250305, temperature, metadata"));
    assert_eq!(tools.offered(0), ["weather".to_owned(), "x".repeat(128)]);
}
