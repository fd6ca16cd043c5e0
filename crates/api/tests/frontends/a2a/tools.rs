//! Tools that the client runs: offered with a message, called by the agent, given back by either way.

use gembridge_core::test_support::{ScriptedAgents, done, text};
use serde_json::{Value, json};

use super::support::{BOTH, TestServer, Version, state};
use crate::openai::support::tools::FakeTools;
use crate::scenarios::gateway::Gateway;

fn with_tools(version: Version, text: &str, names: &[&str]) -> Value {
    let tool = |name: &&str| json!({ "name": name, "description": "one", "parameters": { "type": "object" } });
    let mut message = version.text("m", text);
    message["metadata"] = json!({ "tools": names.iter().map(tool).collect::<Vec<_>>() });
    message
}

fn result(call: &Value, name: &str, response: &Value) -> Value {
    json!({ "callId": call, "outcome": "inject_result", "functionResponse": { "name": name, "response": response } })
}

fn calls(task: &Value) -> Vec<Value> {
    let parts = task["status"]["message"]["parts"].as_array().expect("what is waited for");
    parts.iter().map(|part| part["data"]["request"].clone()).collect()
}

#[tokio::test]
async fn a_result_goes_in_by_a_method_of_its_own() {
    for version in BOTH {
        for method in ["inject_result", if version == Version::V03 { "tasks/injectResult" } else { "InjectResult" }] {
            let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
            let gateway = Gateway::with_tools(&agents, &tools);
            let server = TestServer::new(&gateway).await;
            let (task, waiting) = tokio::join!(server.send(version, with_tools(version, "hi", &["weather"])), async {
                agents.until_prompted(0).await;
                tools.call(0, "weather", &json!({ "city": "Paris" })).await
            });
            assert_eq!(state(&task), "input-required");
            let called = calls(&task);
            assert_eq!(
                (called.len(), &called[0]["name"], &called[0]["args"]),
                (1, &json!("weather"), &json!({ "city": "Paris" }))
            );
            let params = json!({
                "taskId": task["id"], "callId": called[0]["callId"],
                "functionResponse": { "name": "weather", "response": { "output": "sunny" } },
            });
            let (task, ()) = tokio::join!(server.call(version, method, params), async {
                assert_eq!(waiting.text().await, "sunny");
                agents.does(0, [text("It is sunny."), done()]).await;
            });
            let task = version.task(&task.unwrap()).clone();
            assert_eq!(task["status"]["message"]["parts"][0]["text"], "It is sunny.");
        }
    }
}

#[tokio::test]
async fn several_results_come_in_any_order_and_none_twice() {
    for version in BOTH {
        let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
        let gateway = Gateway::with_calls_at_once(&agents, &tools);
        let server = TestServer::new(&gateway).await;
        let (task, (one, two)) = tokio::join!(server.send(version, with_tools(version, "hi", &["a", "b"])), async {
            agents.until_prompted(0).await;
            let one = tools.call(0, "a", &json!({})).await;
            (one, tools.call(0, "b", &json!({})).await)
        });
        let called = calls(&task);
        assert_eq!(called.len(), 2);
        let given = |at: usize, response: &Value| {
            let part = version.data_part(&result(&called[at]["callId"], "any", response));
            let mut message = version.message("r", &[part]);
            message["taskId"] = task["id"].clone();
            message
        };
        let (half, ()) = tokio::join!(server.send(version, given(1, &json!("second"))), async {
            assert_eq!(two.text().await, "second");
        });
        assert_eq!(state(&half), "input-required");
        assert_eq!(calls(&half), called[..1], "the other call still waits");
        let params = json!({ "message": given(1, &json!("again")) });
        let error = server.call(version, version.method("message/send"), params).await.unwrap_err();
        assert_eq!(error["code"], -32602);
        assert!(error["message"].as_str().unwrap().contains(called[0]["callId"].as_str().unwrap()), "{error}");
        let (whole, ()) = tokio::join!(server.send(version, given(0, &json!({ "a": 1 }))), async {
            assert_eq!(one.text().await, r#"{"a":1}"#);
            agents.does(0, [text("done"), done()]).await;
        });
        assert_eq!(whole["status"]["message"]["parts"][0]["text"], "done");
    }
}

#[tokio::test]
async fn a_result_that_nothing_waits_for_is_said_to_the_agent() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("thanks"), done()]]);
    let gateway = Gateway::new(&agents);
    let server = TestServer::new(&gateway).await;
    let task = server.send(Version::V03, Version::V03.text("m", "hi")).await;
    let part = Version::V03.data_part(&result(&json!("call_gone"), "weather", &json!({ "output": "sunny" })));
    let mut message = Version::V03.message("r", &[part]);
    message["taskId"] = task["id"].clone();
    let next = server.send(Version::V03, message).await;
    assert_eq!(next["id"], task["id"]);
    assert_eq!(agents.prompts(0)[1], "The tool weather gave back:\nsunny");
}

#[tokio::test]
async fn tools_may_come_with_a_later_message() {
    let (agents, tools) = (
        ScriptedAgents::new(|prompted| if prompted.prompt.contains("now") { vec![] } else { vec![vec![done()]] }),
        FakeTools::new(),
    );
    let gateway = Gateway::with_tools(&agents, &tools);
    let server = TestServer::new(&gateway).await;
    let task = server.send(Version::V03, Version::V03.text("m", "hi")).await;
    let mut message = with_tools(Version::V03, "now", &["weather"]);
    message["taskId"] = task["id"].clone();
    let (waiting, _call) = tokio::join!(server.send(Version::V03, message), async {
        agents.until_prompted(1).await;
        tools.call(0, "weather", &json!({})).await
    });
    assert_eq!(calls(&waiting)[0]["name"], "weather");
}

#[tokio::test]
async fn a_result_without_a_name_or_a_response_is_refused() {
    let server = TestServer::new(&Gateway::new(&ScriptedAgents::new(|_| vec![vec![done()]]))).await;
    let task = server.send(Version::V03, Version::V03.text("m", "hi")).await;
    for response in [json!({}), json!({ "name": "a" }), json!({ "response": {} })] {
        let params = json!({ "taskId": task["id"], "callId": "call_x", "functionResponse": response });
        let error = server.call(Version::V03, "inject_result", params).await.unwrap_err();
        assert_eq!(error["code"], -32602);
    }
}

/// A list that a test changes.
struct Listed(std::sync::Mutex<Result<std::sync::Arc<Value>, String>>);

impl gembridge_api::a2a::OperatorTools for Listed {
    fn list(&self) -> Result<std::sync::Arc<Value>, String> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn the_operators_list_is_for_tasks_that_name_no_tools_and_is_looked_at_for_each() {
    let agents = ScriptedAgents::new(|_| vec![vec![done()]]);
    let tools = FakeTools::new();
    let gateway = Gateway::with_tools(&agents, &tools);
    let listed = |name: &str| Ok(std::sync::Arc::new(json!([{ "name": name, "parameters": { "type": "object" } }])));
    let source = std::sync::Arc::new(Listed(std::sync::Mutex::new(listed("first"))));
    let operator_tools: std::sync::Arc<dyn gembridge_api::a2a::OperatorTools> = source.clone();
    let config = gembridge_api::a2a::A2aConfig { operator_tools: Some(operator_tools), ..Default::default() };
    let server = TestServer::with(&gateway, config).await;
    let version = Version::V10;
    server.send(version, version.text("m", "hi")).await;
    assert_eq!(tools.offered(0), ["first"]);
    server.send(version, with_tools(version, "hi", &["own"])).await;
    assert_eq!(tools.offered(1), ["own"], "a message's own list counts");
    *source.0.lock().unwrap() = listed("second");
    server.send(version, version.text("m", "hi")).await;
    assert_eq!(tools.offered(2), ["second"], "it is read again");
    *source.0.lock().unwrap() = Err("the list is broken".to_owned());
    let error = server.call(version, "SendMessage", json!({ "message": version.text("m", "hi") })).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("the list is broken"), "{error}");
}
