//! Answers in a form that the client asks for.

use std::sync::Arc;

use gembridge_core::model::{Event, Stop};
use serde_json::{Value, json};

use crate::openai::support::http::Answer;
use crate::openai::support::server::{TestServer, chat_with};
use crate::openai::support::tools::FakeTools;
use crate::openai::support::{done, stopped, text, thought};
use gembridge_core::test_support::ScriptedAgents;

fn person(more: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let format = json!({"type": "json_schema", "json_schema": {"name": "person", "strict": true, "schema": schema}});
    let mut request = chat_with(&[("user", "who?")], json!({"response_format": format}));
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request
}

/// Each prompt is answered with the next of these texts.
fn saying(texts: &'static [&'static str]) -> Arc<ScriptedAgents> {
    let said = std::sync::atomic::AtomicUsize::new(0);
    ScriptedAgents::new(move |_| {
        let next = said.fetch_add(1, std::sync::atomic::Ordering::SeqCst).min(texts.len() - 1);
        vec![vec![text(texts[next]), done()]]
    })
}

async fn ask(server: &TestServer, request: &Value) -> Answer {
    server.stream(request).await.whole().await
}

#[tokio::test]
async fn the_last_delivery_is_the_answer_and_prose_around_it_is_not() {
    for stream in [false, true] {
        let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
        let server = TestServer::with_tools(&agents, &tools).await;
        let request = person(&json!({"stream": stream}));
        let (answer, ()) = tokio::join!(ask(&server, &request), async {
            agents.until_prompted(0).await;
            agents.does(0, [thought("hm"), text("Here it is: ")]).await;
            tools.output(0, &json!({"name": "Bob"})).await;
            tools.output(0, &json!({"name": "Ann"})).await;
            // The session hears of tools and of words on two ways: the end must not overtake.
            server.until_logged(2, |event| matches!(event, Event::Output(_))).await;
            agents.does(0, [text("Done."), done()]).await;
        });
        let said = if stream { answer.streamed(0) } else { answer.text() };
        assert_eq!(said, r#"{"name":"Ann"}"#);
        assert!(agents.prompts(0)[0].starts_with("who?\n(deliver"), "{:?}", agents.prompts(0));
        assert!(tools.last_offer(0).format.is_some());
    }
}

#[tokio::test]
async fn an_answer_in_words_counts_if_it_has_the_form() {
    let server = TestServer::with_tools(&saying(&[r#"{"name": "Ann"}"#]), &FakeTools::new()).await;
    let answer = ask(&server, &person(&json!({}))).await;
    assert_eq!((answer.text(), answer.finish()), (r#"{"name": "Ann"}"#.into(), "stop".into()));
    let object = chat_with(&[("user", "who?")], json!({"response_format": {"type": "json_object"}}));
    assert_eq!(ask(&server, &object).await.text(), r#"{"name": "Ann"}"#);
}

#[tokio::test]
async fn a_wrong_form_is_repaired_with_the_words_of_the_check() {
    let agents = saying(&["Ann", r#"{"nom":"Ann"}"#, r#"{"name":"Ann"}"#, "more"]);
    let server = TestServer::with_tools(&agents, &FakeTools::new()).await;
    let request = person(&json!({"stream": true}));
    let answer = ask(&server, &request).await;
    assert_eq!(answer.streamed(0), r#"{"name":"Ann"}"#);
    let prompts = agents.prompts(0);
    assert_eq!(prompts.len(), 3);
    assert!(prompts[1].contains("there is no JSON in it"), "{}", prompts[1]);
    assert!(prompts[2].contains("\"name\" is a required property"), "{}", prompts[2]);
    // The session is found again by what the client has.
    let messages = json!([
        {"role": "user", "content": "who?"},
        {"role": "assistant", "content": answer.streamed(0)},
        {"role": "user", "content": "and?"},
    ]);
    assert_eq!(server.ask(&json!({"model": "played", "messages": messages})).await.text(), "more");
    assert_eq!(agents.opened(), 1);
}

#[tokio::test]
async fn an_answer_that_stays_wrong_is_an_honest_error_with_what_was_said() {
    let agents = saying(&["I would rather talk."]);
    let server = TestServer::with_tools(&agents, &FakeTools::new()).await;
    for stream in [false, true] {
        let answer = ask(&server, &person(&json!({"stream": stream}))).await;
        assert_eq!(answer.status, 502, "{}", answer.body);
        let error = &answer.json()["error"];
        assert_eq!(error["code"], "output_invalid");
        assert!(error["message"].as_str().unwrap().contains("I would rather talk."), "{error}");
    }
    assert_eq!(agents.prompts(0).len(), 3, "two repairs, no more");
}

#[tokio::test]
async fn a_refusal_stays_a_refusal() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("I will not."), stopped(Stop::Refusal)]]);
    let server = TestServer::with_tools(&agents, &FakeTools::new()).await;
    let answer = ask(&server, &person(&json!({}))).await;
    let choice = &answer.json()["choices"][0];
    assert_eq!((&choice["message"]["refusal"], &choice["message"]["content"]), (&json!("I will not."), &Value::Null));
    assert_eq!(choice["finish_reason"], "stop");
    let answer = ask(&server, &person(&json!({"stream": true}))).await;
    let chunks = answer.chunks();
    let refusals: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["refusal"].as_str()).collect();
    assert_eq!((refusals.as_str(), answer.streamed(0).as_str()), ("I will not.", ""));
}

#[tokio::test]
async fn a_schema_that_cannot_be_used_is_refused_in_the_words_of_the_check() {
    let server = TestServer::with_tools(&saying(&["{}"]), &FakeTools::new()).await;
    let request = person(&json!({"response_format": {"type": "json_schema", "json_schema":
        {"name": "p", "schema": {"type": 12}}}}));
    let answer = ask(&server, &request).await;
    assert_eq!(answer.error().2, "response_format.json_schema.schema");
    assert!(answer.body.contains("12 is no type"), "{}", answer.body);
}

#[tokio::test]
async fn a_form_and_tools_go_together() {
    let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let look_up = json!({"type": "function", "function": {"name": "look_up"}});
    let mut request = person(&json!({"tools": [look_up]}));
    let (answer, waiting) = tokio::join!(ask(&server, &request), async {
        agents.until_prompted(0).await;
        tools.call(0, "look_up", &json!({})).await
    });
    assert_eq!(answer.finish(), "tool_calls");
    let message = answer.json()["choices"][0]["message"].clone();
    let result = json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "Ann"});
    request["messages"].as_array_mut().unwrap().extend([message, result]);
    let (answer, ()) = tokio::join!(ask(&server, &request), async {
        assert_eq!(waiting.text().await, "Ann");
        agents.does(0, [text(r#"{"name":"Ann"}"#), done()]).await;
    });
    assert_eq!(answer.text(), r#"{"name":"Ann"}"#);
    assert_eq!(agents.opened(), 1);
}
