//! What a tool's description may hold.

use serde_json::{Value, json};

use super::{Client, called, idle, ids, tool};
use crate::openai::support::http::{Answer, post};
use crate::openai::support::server::{TestServer, chat_with};
use crate::openai::support::tools::FakeTools;

#[tokio::test]
async fn a_description_that_means_nothing_is_refused_by_name() {
    let server = TestServer::with_tools(&idle(), &FakeTools::new()).await;
    let function = |function: Value| json!({"tools": [{"type": "function", "function": function}]});
    let long = "x".repeat(65);
    for (fields, param) in [
        (json!({"tools": [{"type": "web_search"}]}), "tools[0].type"),
        (json!({"tools": [{}]}), "tools[0].type"),
        (json!({"tools": [{"type": "function"}]}), "tools[0].function"),
        (function(json!({})), "tools[0].function.name"),
        (function(json!({"name": ""})), "tools[0].function.name"),
        (function(json!({"name": "get weather"})), "tools[0].function.name"),
        (function(json!({"name": long})), "tools[0].function.name"),
        (function(json!({"name": "f", "parameters": []})), "tools[0].function.parameters"),
        (json!({"tools": [tool("f"), tool("g"), tool("f")]}), "tools[2]"),
        (json!({"tools": [tool("f")], "functions": [{"name": "g"}]}), "functions"),
        (json!({"functions": [{"name": "f"}, {"name": "f"}]}), "functions[1]"),
        (json!({"functions": [{"name": "f"}], "function_call": {"name": "g"}}), "function_call.name"),
        (
            json!({"tools": [tool("f")], "tool_choice": {"type": "allowed_tools", "allowed_tools": {
                "mode": "often", "tools": [{"type": "function", "function": {"name": "f"}}]}}}),
            "tool_choice.allowed_tools.mode",
        ),
    ] {
        let answer = server.ask(&chat_with(&[("user", "hi")], fields.clone())).await;
        assert_eq!(answer.error(), (400, "invalid_request_error".into(), param.into()), "{fields}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_schema_reaches_the_agent_as_it_was_written() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let (answer, _waiting) = called(&server, &agents, &tools, &Client::new("how is Paris?")).await;
    assert_eq!(ids(&answer).len(), 1);
    let offered = tools.last_offer(0).tools[0].clone();
    let schema: Value = serde_json::from_slice(&offered.schema.unwrap().0).unwrap();
    assert_eq!(schema, tool("weather")["function"]["parameters"]);
    assert_eq!(offered.description.as_deref(), Some("tells it"));
}

#[tokio::test]
async fn s26_tools_out_of_bounds_are_refused() {
    let server = TestServer::with_tools(&idle(), &FakeTools::new()).await;
    let send = async |fields: String| -> Answer {
        let body = format!(r#"{{"model":"played","messages":[{{"role":"user","content":"x"}}],{fields}}}"#);
        post(server.address, "/v1/chat/completions", &[], body).await.whole().await
    };
    let with_schema =
        |schema: &str| format!(r#""tools":[{{"type":"function","function":{{"name":"f","parameters":{schema}}}}}]"#);
    let deep = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    for schema in [deep(100), deep(128), deep(100_000), r#"{"a":{"b":1,"b":2}}"#.to_owned()] {
        let answer = send(with_schema(&schema)).await;
        assert_eq!(answer.status, 400, "{}", answer.body);
        assert!(answer.body.len() < 1_000, "{}", answer.body);
    }
    let format =
        format!(r#""response_format":{{"type":"json_schema","json_schema":{{"name":"f","schema":{}}}}}"#, deep(100));
    assert_eq!(send(format).await.status, 400);
    let large = format!(
        r#""response_format":{{"type":"json_schema","json_schema":{{"name":"f","schema":{{"title":"{}"}}}}}}"#,
        "x".repeat(2 << 20)
    );
    assert_eq!(send(large).await.error().2, "response_format.json_schema.schema");
    let many = |count: usize| {
        let tool = |at| format!(r#"{{"type":"function","function":{{"name":"f{at}"}}}}"#);
        format!(r#""tools":[{}]"#, (0..count).map(tool).collect::<Vec<_>>().join(","))
    };
    assert!(send(many(257)).await.body.contains("more than 256"));
}
