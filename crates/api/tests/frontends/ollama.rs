//! What is Ollama's own: results of calls without ids, requests in which nothing is said, and lines that show life.

use std::time::Duration;

use gembridge_api::dialect::DialectConfig;
use gembridge_core::test_support::{ScriptedAgents, done, text};
use serde_json::{Value, json};

use crate::openai::support::http::{Answer, get, post};
use crate::openai::support::server::{ServerSetup, TestServer};
use crate::openai::support::tools::FakeTools;

async fn chat(server: &TestServer, fields: Value) -> Answer {
    let mut request = json!({ "model": "played", "stream": false });
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    post(server.address, "/api/chat", &[], request.to_string()).await.whole().await
}

fn tools_of_client() -> Value {
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name } });
    json!([tool("weather"), tool("time")])
}

/// How clients send back what was called, and what came of it.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// No ids; results name their tool.
    NamesAlone,
    /// Calls keep their ids; results name their tool.
    IdsInCalls,
    /// Results have ids; calls have none.
    IdsInResults,
    IdsInBoth,
    /// Results have neither.
    OrderAlone,
    /// The same, and arguments come back without what is empty.
    EmptyLeftOut,
}

fn history(shape: Shape, calls: &Value, results: [&str; 3]) -> Value {
    let calls = calls.as_array().unwrap();
    let call = |call: &Value| {
        let mut call = call.clone();
        if !matches!(shape, Shape::IdsInCalls | Shape::IdsInBoth) {
            call.as_object_mut().unwrap().remove("id");
        }
        if matches!(shape, Shape::EmptyLeftOut) {
            call["function"]["arguments"].as_object_mut().unwrap().remove("note");
        }
        call
    };
    let result = |(call, said): (&Value, &str)| match shape {
        Shape::NamesAlone | Shape::IdsInCalls => {
            json!({ "role": "tool", "content": said, "tool_name": call["function"]["name"] })
        }
        Shape::IdsInResults | Shape::IdsInBoth => {
            json!({ "role": "tool", "content": said, "tool_call_id": call["id"] })
        }
        Shape::OrderAlone | Shape::EmptyLeftOut => json!({ "role": "tool", "content": said }),
    };
    let asked = json!({ "role": "user", "content": "compare" });
    let called = json!({ "role": "assistant", "tool_calls": calls.iter().map(call).collect::<Vec<_>>() });
    let results = calls.iter().zip(results).map(result);
    [asked, called].into_iter().chain(results).collect()
}

#[tokio::test]
async fn results_find_their_calls_in_every_shape_that_clients_send() {
    for shape in [
        Shape::NamesAlone,
        Shape::IdsInCalls,
        Shape::IdsInResults,
        Shape::IdsInBoth,
        Shape::OrderAlone,
        Shape::EmptyLeftOut,
    ] {
        let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
        let server = TestServer::with_calls_at_once(&agents, &tools).await;
        let first = json!({ "messages": [{ "role": "user", "content": "compare" }], "tools": tools_of_client() });
        let (answer, waiting) = tokio::join!(chat(&server, first), async {
            agents.until_prompted(0).await;
            let oslo = tools.call(0, "weather", &json!({ "city": "Oslo", "note": "" })).await;
            let time = tools.call(0, "time", &json!({})).await;
            (oslo, time, tools.call(0, "weather", &json!({ "city": "Rome" })).await)
        });
        let calls = &answer.json()["message"]["tool_calls"];
        let names: Vec<&Value> = calls.as_array().unwrap().iter().map(|call| &call["function"]["name"]).collect();
        assert_eq!(names, ["weather", "time", "weather"]);
        let messages = history(shape, calls, ["rain", "noon", "sun"]);
        let second = json!({ "messages": messages, "tools": tools_of_client() });
        let (answer, ()) = tokio::join!(chat(&server, second), async {
            let (oslo, time, rome) = waiting;
            assert_eq!((oslo.text().await, time.text().await), ("rain".to_owned(), "noon".to_owned()), "{shape:?}");
            assert_eq!(rome.text().await, "sun", "{shape:?}");
            agents.does(0, [text("done"), done()]).await;
        });
        assert_eq!(answer.json()["message"]["content"], "done", "{shape:?}: {}", answer.body);
        assert_eq!(agents.prompts(0), ["compare"], "{shape:?}: nothing was told twice");
        assert_eq!(agents.opened(), 1, "{shape:?}");
    }
}

#[tokio::test]
async fn where_nothing_is_said_a_model_is_loaded_and_no_turn_begins() {
    let agents = ScriptedAgents::new(|_| vec![]);
    let server = TestServer::new(&agents).await;
    for (path, fields, reason) in [
        ("/api/chat", json!({ "messages": [] }), "load"),
        ("/api/chat", json!({}), "load"),
        ("/api/generate", json!({ "prompt": "" }), "load"),
        ("/api/generate", json!({ "keep_alive": 0 }), "unload"),
        ("/api/generate", json!({ "keep_alive": "0s" }), "unload"),
        ("/api/generate", json!({ "keep_alive": "5m" }), "load"),
    ] {
        for stream in [true, false] {
            let mut request = json!({ "model": "played", "stream": stream });
            request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let answer = post(server.address, path, &[], request.to_string()).await.whole().await;
            assert_eq!((answer.status, &answer.json()["done_reason"]), (200, &json!(reason)), "{}", answer.body);
            assert_eq!(answer.json()["done"], true);
        }
    }
    assert_eq!(agents.opened(), 0);
}

#[tokio::test]
async fn a_stream_in_which_nothing_is_said_has_empty_lines() {
    let agents = ScriptedAgents::new(|_| vec![]);
    let config = DialectConfig { first_sign: Duration::ZERO, keep_alive: Duration::from_millis(10) };
    let server = TestServer::with(&[("played", &agents)], ServerSetup { config, ..ServerSetup::default() }).await;
    let request = json!({ "model": "played", "messages": [{ "role": "user", "content": "hi" }] });
    let mut stream = post(server.address, "/api/chat", &[], request.to_string()).await;
    stream.until(r#""message":{"role":"assistant","content":""},"done":false}"#).await;
    agents.does(0, [text("a"), done()]).await;
    assert!(stream.whole().await.body.contains(r#""done":true"#));
}

#[tokio::test]
async fn names_of_models_have_versions_there() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a"), done()]]);
    let server = TestServer::new(&agents).await;
    for name in ["played", "played:latest"] {
        let answer = chat(&server, json!({ "model": name, "messages": [{ "role": "user", "content": "hi" }] })).await;
        assert_eq!(answer.json()["model"], name, "as it was asked for");
        assert_eq!(answer.header("x-gembridge-model-fallback"), None);
    }
    let listed = get(server.address, "/api/tags").await.json();
    assert_eq!(listed["models"][0]["name"], "played:latest");
    assert_eq!(listed["models"][0]["digest"].as_str().unwrap().len(), 64);
    assert_eq!(get(server.address, "/api/ps").await.json()["models"][0]["name"], "played:latest");
    let version = get(server.address, "/api/version").await.json();
    assert!(version["version"].as_str().unwrap().split('.').all(|part| part.parse::<u32>().is_ok()));
    for named in [json!({ "model": "played" }), json!({ "name": "played:latest" })] {
        let shown = post(server.address, "/api/show", &[], named.to_string()).await.whole().await.json();
        assert_eq!(shown["model_info"]["general.architecture"], "played");
        assert!(shown["model_info"]["played.context_length"].is_u64());
        assert!(shown["capabilities"].as_array().unwrap().contains(&json!("tools")));
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_a_text_under_error() {
    let agents = ScriptedAgents::new(|_| vec![]);
    let server = TestServer::new(&agents).await;
    let with = |field: &str, value: Value| {
        let mut request = json!({ "model": "played", "messages": [{ "role": "user", "content": "hi" }] });
        request[field] = value;
        request.to_string()
    };
    for (body, named) in [
        ("x".repeat(64 << 10), "not a request"),
        (with("model", Value::Null), "`model` is missing"),
        (with("messages", json!([{ "role": "robot", "content": "" }])), "messages[0].role"),
        (with("messages", json!([{ "role": "user", "images": ["?"] }])), "messages[0].images[0]"),
        (with("format", json!("xml")), "xml"),
        (with("suffix", json!("x")), "suffix"),
        (with("width", json!(5)), "width"),
        (with("stream", json!("yes")), "stream"),
        (with("tools", json!([{ "type": "function" }])), "tools[0].function"),
        (with("options", json!({ "stop": [""] })), "options.stop"),
    ] {
        let refused = post(server.address, "/api/chat", &[], body).await.whole().await;
        assert_eq!(refused.status, 400, "{}", refused.body);
        assert!(refused.json()["error"].as_str().unwrap().contains(named), "{}", refused.body);
    }
    assert_eq!(agents.opened(), 0);
}
