//! Clients of the older wording: one function at a time, without ids.

use serde_json::json;

use super::{Client, idle, prompted, tool};
use crate::openai::support::server::TestServer;
use crate::openai::support::tools::FakeTools;
use crate::openai::support::{done, text};

fn client() -> Client {
    Client::with("how is Paris?", json!({"functions": [tool("weather")["function"], tool("time")["function"]]}))
}

#[tokio::test]
async fn a_function_is_called_and_its_result_finds_the_turn_by_the_history() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut client = client();
    for round in 1..=3 {
        let request = client.request();
        let (answer, waiting) = tokio::join!(server.ask(&request), async {
            prompted(&agents, 0, round).await;
            tools.call(0, "weather", &json!({"city": "Paris"})).await
        });
        assert_eq!(answer.finish(), "function_call");
        let message = &answer.json()["choices"][0]["message"];
        assert_eq!(message["function_call"], json!({"name": "weather", "arguments": r#"{"city":"Paris"}"#}));
        assert!(message.get("tool_calls").is_none(), "{message}");
        client.keep(&answer);
        client.messages.push(json!({"role": "function", "name": "weather", "content": "sunny"}));
        let request = client.request();
        let (answer, ()) = tokio::join!(server.ask(&request), async {
            assert_eq!(waiting.text().await, "sunny");
            agents.does(0, [text("It is sunny."), done()]).await;
        });
        assert_eq!(answer.text(), "It is sunny.");
        client.keep(&answer).says("and now?");
    }
    assert_eq!(agents.opened(), 1);
}

#[tokio::test]
async fn a_function_streams_as_one_call() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut request = client().request();
    request["stream"] = json!(true);
    let (answer, _waiting) = tokio::join!(async { server.stream(&request).await.whole().await }, async {
        agents.until_prompted(0).await;
        tools.call(0, "time", &json!({"city": "Rome"})).await
    });
    let chunks = answer.chunks();
    let call = chunks.iter().find(|chunk| !chunk["choices"][0]["delta"]["function_call"].is_null()).unwrap();
    assert_eq!(call["choices"][0]["delta"]["function_call"]["name"], "time");
    assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "function_call");
}

#[tokio::test]
async fn a_function_of_another_time_is_told_to_a_new_session() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut client = client();
    client.messages.push(json!({"role": "assistant", "content": null,
        "function_call": {"name": "weather", "arguments": "{}"}}));
    client.messages.push(json!({"role": "function", "name": "weather", "content": "sunny"}));
    let request = client.request();
    let (answer, ()) = tokio::join!(server.ask(&request), async {
        agents.until_prompted(0).await;
        agents.does(0, [text("ok"), done()]).await;
    });
    assert_eq!(answer.text(), "ok");
    let told = "[User]\nhow is Paris?\n\n[Assistant]\ncalled the tool weather with {}\n\n\
                [Tool]\nweather gave back:\nsunny";
    assert_eq!(agents.prompts(0), [told]);
}
