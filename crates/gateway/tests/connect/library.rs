//! The library against a running gateway, through the relay.

use std::time::Duration;

use gembridge_sdk::schemars::{self, JsonSchema};
use gembridge_sdk::{Adapter, AdapterBuilder, Tool, ToolOrigin, TurnEvent};
use serde::Deserialize;

use crate::support::gateway::Gateway;
use crate::support::home::Home;

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
