//! Which tools may be called, and which must.

use gembridge_core::model::ReturnOutcome;
use serde_json::json;

use super::{Client, called, idle, ids, prompted, tool};
use crate::openai::support::server::TestServer;
use crate::openai::support::tools::FakeTools;
use crate::openai::support::{done, text};
use gembridge_core::test_support::ScriptedAgents;

fn wanted(choice: &serde_json::Value) -> Client {
    Client::with("how is Paris?", json!({"tools": [tool("weather"), tool("time")], "tool_choice": choice}))
}

#[tokio::test]
async fn only_what_may_be_called_is_offered() {
    let named = |name: &str| json!({"type": "function", "function": {"name": name}});
    let allowed =
        |mode: &str| json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [named("time")]}});
    for (choice, offered) in [
        (json!("auto"), vec!["weather", "time"]),
        (json!("required"), vec!["weather", "time"]),
        (named("time"), vec!["time"]),
        (allowed("auto"), vec!["time"]),
        (allowed("required"), vec!["time"]),
    ] {
        let (agents, tools) = (idle(), FakeTools::new());
        let server = TestServer::with_tools(&agents, &tools).await;
        let request = wanted(&choice).request();
        let (answer, _waiting) = tokio::join!(server.ask(&request), async {
            agents.until_prompted(0).await;
            tools.call(0, "time", &json!({"city": "Paris"})).await
        });
        assert_eq!(ids(&answer).len(), 1, "{choice}");
        assert_eq!(tools.offered(0), offered, "{choice}");
    }
    let (agents, tools) = (ScriptedAgents::new(|_| vec![vec![text("ok"), done()]]), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    assert_eq!(server.ask(&wanted(&json!("none")).request()).await.text(), "ok");
    assert_eq!(tools.places(), 0, "nothing is offered");
}

#[tokio::test]
async fn prose_where_a_call_is_required_gets_one_more_chance() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let request = wanted(&json!("required")).request();
    let (answer, _waiting) = tokio::join!(server.ask(&request), async {
        agents.until_prompted(0).await;
        agents.does(0, [text("It is sunny, I guess."), done()]).await;
        prompted(&agents, 0, 2).await;
        tools.call(0, "weather", &json!({"city": "Paris"})).await
    });
    assert_eq!(ids(&answer).len(), 1);
    assert_eq!(answer.json()["choices"][0]["message"]["content"], json!(null), "the guess was not used");
    assert!(agents.prompts(0)[1].contains("calls no tool"), "{:?}", agents.prompts(0));
}

#[tokio::test]
async fn an_agent_that_never_calls_what_it_must_is_an_honest_error() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("It is sunny."), done()]]);
    let server = TestServer::with_tools(&agents, &FakeTools::new()).await;
    for stream in [false, true] {
        let mut request = wanted(&json!("required")).request();
        request["stream"] = json!(stream);
        let answer = server.stream(&request).await.whole().await;
        assert_eq!(answer.status, 502, "{}", answer.body);
        let error = &answer.json()["error"];
        assert_eq!((error["type"].as_str(), error["code"].as_str()), (Some("api_error"), Some("tool_call_missing")));
        assert!(error["message"].as_str().unwrap().contains("It is sunny."), "{error}");
    }
    assert_eq!(agents.prompts(0).len(), 2, "it was asked twice");
}

#[tokio::test]
async fn calls_after_the_client_wants_none_go_back_to_the_agent() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut client = wanted(&json!("auto"));
    let (answer, waiting) = called(&server, &agents, &tools, &client).await;
    client.fields["tool_choice"] = json!("none");
    let request = client.keep(&answer).result(&ids(&answer)[0], "sunny").request();
    let (answer, ()) = tokio::join!(server.ask(&request), async {
        assert_eq!(waiting.text().await, "sunny");
        let unwanted = tools.call(0, "time", &json!({"city": "Paris"})).await;
        assert_eq!(unwanted.result().await.outcome, ReturnOutcome::Failed);
        agents.does(0, [text("sunny"), done()]).await;
    });
    assert_eq!(answer.text(), "sunny");
}

#[tokio::test]
async fn a_call_that_went_back_to_the_agent_is_not_the_one_that_is_required() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut strict = tool("weather");
    strict["function"]["strict"] = json!(true);
    let fields = json!({"tools": [strict], "tool_choice": "required"});
    let request = Client::with("how is Paris?", fields).request();
    let (answer, ()) = tokio::join!(server.ask(&request), async {
        agents.until_prompted(0).await;
        let wrong = tools.call(0, "weather", &json!({"town": "Paris"})).await;
        assert_eq!(wrong.result().await.outcome, ReturnOutcome::Failed);
        agents.does(0, [text("It is sunny."), done()]).await;
        prompted(&agents, 0, 2).await;
        agents.does(0, [text("Still sunny."), done()]).await;
    });
    assert_eq!(answer.status, 502, "{}", answer.body);
    assert_eq!(answer.json()["error"]["code"], "tool_call_missing");
}

#[tokio::test]
async fn arguments_that_do_not_fit_a_strict_tool_go_back_to_the_agent() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut strict = tool("weather");
    strict["function"]["strict"] = json!(true);
    let client = Client::with("how is Paris?", json!({"tools": [strict]}));
    let request = client.request();
    let (answer, _waiting) = tokio::join!(server.ask(&request), async {
        agents.until_prompted(0).await;
        let wrong = tools.call(0, "weather", &json!({"town": "Paris"})).await;
        let told = wrong.text().await;
        assert!(told.contains("\"city\" is a required property"), "{told}");
        tools.call(0, "weather", &json!({"city": "Paris"})).await
    });
    assert_eq!(ids(&answer).len(), 1);
    let function = &answer.json()["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(function["arguments"], r#"{"city":"Paris"}"#);
}
