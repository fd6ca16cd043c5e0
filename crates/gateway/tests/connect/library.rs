//! The library against a running gateway, through the relay.

use std::time::Duration;

use gembridge_sdk::schemars::{self, JsonSchema};
use gembridge_sdk::{
    Adapter, AdapterBuilder, Decision, ErrorKind, Permissions, Prompt, Tool, ToolOrigin, ToolStatus, TurnEvent,
};
use serde::Deserialize;
use serde_json::json;

use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::real_agent::{Agent, Model};

#[derive(Deserialize, JsonSchema)]
struct Numbers {
    a: i64,
    b: i64,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Review {
    summary: String,
}

fn adapter(gateway: &Gateway) -> AdapterBuilder {
    let binary = env!("CARGO_BIN_EXE_gembridge");
    // The relay looks for the gateway's proof where the gateway keeps it.
    let mut adapter = Adapter::gateway(format!("http://{}", gateway.address), gateway.key.as_str());
    for (name, value) in gateway.home.command(&[]).get_envs() {
        if let (Some(name), Some(value)) = (name.to_str(), value.and_then(|value| value.to_str())) {
            adapter = adapter.env(name, value);
        }
    }
    adapter.program(binary).helper_program(binary).startup_timeout(Duration::from_mins(2))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_asks_the_agent_of_a_gateway_with_the_same_types() {
    let gateway = Home::for_serving().serve();
    let adapter = adapter(&gateway).build().unwrap();
    assert_eq!(adapter.name(), "gateway_acp");
    assert!(adapter.evaluate("hello there").await.unwrap().text.contains("hello there"));

    let mut session = adapter.session().await.unwrap();
    session.evaluate("remember the plum").await.unwrap();
    assert!(session.evaluate("history").await.unwrap().text.contains("remember the plum"));
    let mut stream = session.stream("permission ls").unwrap();
    let mut asked = 0;
    while let Some(event) = stream.next().await {
        asked += usize::from(matches!(event, TurnEvent::Permission(_)));
    }
    stream.finish().await.unwrap();
    assert_eq!(asked, 1, "the gateway asks the program");
    adapter.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_and_types_work_where_the_gateway_allows_them() {
    let home = Home::for_serving();
    home.configure_serving("[acp]\nallow_mcp_servers = true\n");
    let gateway = home.serve();
    let add = Tool::new("add", "Adds two numbers", |numbers: Numbers| async move { Ok(numbers.a + numbers.b) });
    let adapter = adapter(&gateway).tool(add).build().unwrap();
    let reply = adapter.evaluate(r#"call add {"a": 2, "b": 40}"#).await.unwrap();
    assert!(reply.text.contains("42"), "{}", reply.text);
    assert!(reply.tools.iter().any(|tool| tool.origin == ToolOrigin::Program), "{:?}", reply.tools);
    let review = adapter.evaluate_as::<Review>(r#"answer-with structured_output {"summary": "fine"}"#).await.unwrap();
    assert_eq!(review.value, Review { summary: "fine".to_owned() });
    adapter.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_does_not_allow_functions_says_so() {
    let gateway = Home::for_serving().serve();
    let error = adapter(&gateway).build().unwrap().evaluate_as::<Review>("hello").await.unwrap_err();
    assert!(error.message.contains("acp.allow_mcp_servers"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_of_the_gateway_does_and_asks_reaches_the_program() {
    let home = Home::new();
    let record = home.record();
    let home = home.with_fake(&["--record", record.path().to_str().unwrap()], "[default]\nagent = 'fake'\n");
    let gateway = home.serve_with(&["--agent", "fake"], &[]);
    let careful = Permissions::ask(|request| async move {
        if request.title.contains("rm") { Decision::Reject } else { Decision::AllowOnce }
    });
    let adapter = adapter(&gateway).permissions(careful).build().unwrap();
    let script = "think hm ;; say one ;; tool read Look => found ;; tool-fail execute Run ;; say two ;; usage";
    let reply = adapter.evaluate(script).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.thoughts.as_str()), ("onetwo", "hm"));
    let tools: Vec<_> = reply.tools.iter().map(|tool| (tool.name.as_str(), tool.status, tool.origin)).collect();
    let expected =
        [("acp:Look", ToolStatus::Completed, ToolOrigin::Agent), ("acp:Run", ToolStatus::Failed, ToolOrigin::Agent)];
    assert_eq!(tools, expected);
    assert!(reply.usage.is_some_and(|usage| usage.input.is_some()), "{:?}", reply.usage);

    // A deadline of the program reaches the agent behind the gateway, whose process stays.
    let mut session = adapter.session().await.unwrap();
    session.evaluate("say warm").await.unwrap();
    let late = Prompt::new("say begun ;; wait-cancel").within(Duration::from_secs(2));
    let error = session.evaluate(late).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Deadline, "{error}");
    assert_eq!(record.messages_of("session/cancel").len(), 1);
    assert_eq!(session.evaluate("say on").await.unwrap().text, "on");
    let error = adapter.evaluate("say a ;; exit 3").await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Refused | ErrorKind::Crashed), "{error:?}");
    adapter.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_the_program_are_called_by_the_real_gemini_cli_behind_a_gateway() {
    let model = Model::start(Agent::Gemini).await;
    let home = Home::new();
    let workspace = home.path("workspace");
    std::fs::create_dir(&workspace).unwrap();
    // In chat its tools are refused: they are of a server that is not the gateway's own, so they ask.
    let settings = format!("mode = 'agent'\nworkspace = '{}'\n[acp]\nallow_mcp_servers = true\n", workspace.display());
    let gateway = Agent::Gemini.serve(home, &model, &settings, &[]);
    let add = Tool::new("add", "Adds two numbers", |numbers: Numbers| async move { Ok(numbers.a + numbers.b) });
    let adapter = adapter(&gateway).tool(add).build().unwrap();
    let call = json!({"call": {"name": "mcp_program-tools_add", "id": "c1", "args": {"a": 2, "b": 40}}});
    let script = format!("please SCRIPT:{}:END", json!({"calls": [[call], [{"text": "done"}]]}));
    let reply = adapter.evaluate(script).await.unwrap();
    assert_eq!(reply.text, "done");
    let called = reply.tools.iter().find(|tool| tool.origin == ToolOrigin::Program);
    assert_eq!(called.and_then(|tool| tool.output.as_deref()), Some("42"), "{:?}", reply.tools);
    assert!(model.last_call().contains("42"));
    adapter.close().await;
}
