//! Tools that the client runs: the call comes back, the turn waits, the result goes in, the answer goes on.

use std::sync::Arc;

use gembridge_core::model::{Content, Event, ReturnOutcome, Usage};
use serde_json::{Value, json};

use crate::openai::support::http::Answer;
use crate::openai::support::server::{ServerSetup, TestServer};
use crate::openai::support::tools::FakeTools;
use crate::openai::support::{done, text, update};
use gembridge_core::test_support::{Order, ScriptedAgents};

mod choices;
mod definitions;
mod functions;
mod lost;

/// A client with one tool, and its history.
pub struct Client {
    pub messages: Vec<Value>,
    pub fields: Value,
}

impl Client {
    pub fn new(text: &str) -> Self {
        Self::with(text, json!({"tools": [tool("weather"), tool("time")]}))
    }

    pub fn with(text: &str, fields: Value) -> Self {
        Self { messages: vec![json!({"role": "user", "content": text})], fields }
    }

    pub fn request(&self) -> Value {
        let mut request = json!({"model": "played", "messages": self.messages});
        request.as_object_mut().unwrap().extend(self.fields.as_object().unwrap().clone());
        request
    }

    pub fn says(&mut self, text: &str) -> &mut Self {
        self.messages.push(json!({"role": "user", "content": text}));
        self
    }

    /// Keeps the answer, as clients do.
    pub fn keep(&mut self, answer: &Answer) -> &mut Self {
        assert_eq!(answer.status, 200, "{}", answer.body);
        self.messages.push(answer.json()["choices"][0]["message"].clone());
        self
    }

    pub fn result(&mut self, id: &str, content: impl Into<Value>) -> &mut Self {
        self.messages.push(json!({"role": "tool", "tool_call_id": id, "content": content.into()}));
        self
    }
}

pub fn tool(name: &str) -> Value {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    json!({"type": "function", "function": {"name": name, "description": "tells it", "parameters": parameters}})
}

/// The ids of the calls in a whole answer.
pub fn ids(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.finish(), "tool_calls", "{}", answer.body);
    let calls = answer.json()["choices"][0]["message"]["tool_calls"].as_array().expect("calls").clone();
    calls.iter().map(|call| call["id"].as_str().expect("an id").to_owned()).collect()
}

pub fn idle() -> Arc<ScriptedAgents> {
    ScriptedAgents::new(|_| vec![])
}

/// Waits for the agent's prompt of this number, counted from 1.
pub async fn prompted(agents: &ScriptedAgents, agent: usize, number: usize) {
    agents.until("a prompt", |agents| agents.prompts(agent).len() >= number).await;
}

/// One round: the answer, once the agent made this call.
pub async fn called(
    server: &TestServer,
    agents: &ScriptedAgents,
    tools: &FakeTools,
    client: &Client,
) -> (Answer, crate::openai::support::tools::Waiting) {
    let request = client.request();
    tokio::join!(server.ask(&request), async {
        agents.until_prompted(0).await;
        tools.call(0, "weather", &json!({"city": "Paris"})).await
    })
}

#[tokio::test]
async fn a_call_ends_the_answer_and_its_result_goes_into_the_same_turn() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut client = Client::new("how is Paris?");
    let (answer, waiting) = called(&server, &agents, &tools, &client).await;
    assert_eq!(tools.offered(0), ["weather", "time"]);
    let message = &answer.json()["choices"][0]["message"];
    assert_eq!(message["content"], Value::Null);
    assert_eq!(message["tool_calls"][0]["type"], "function");
    let function = json!({"name": "weather", "arguments": r#"{"city":"Paris"}"#});
    assert_eq!(message["tool_calls"][0]["function"], function);
    let usage = |answer: &Answer| {
        let usage = &answer.json()["usage"];
        (usage["prompt_tokens"].clone(), usage["completion_tokens"].clone())
    };
    assert_eq!(usage(&answer), (json!(49), json!(6)), "our count, with the tools: the agent has told nothing yet");

    let id = &ids(&answer)[0];
    let request = client.keep(&answer).result(id, "sunny").request();
    let (answer, ()) = tokio::join!(server.ask(&request), async {
        assert_eq!(waiting.text().await, "sunny");
        // Tokens of both calls of the model, as agents report them at the end of a turn.
        let told = Usage { input: Some(1_001 + 1_003), output: Some(18), ..Usage::default() };
        agents.does(0, [text("It is sunny."), update(Event::Usage(told)), done()]).await;
    });
    assert_eq!((answer.text(), answer.finish()), ("It is sunny.".into(), "stop".into()));
    let (prompt, completion) = usage(&answer);
    assert!((1_003..1_150).contains(&prompt.as_u64().unwrap()), "the context of the last call, not the sum: {prompt}");
    assert_eq!(completion, 6, "what was said since the call");
    assert_eq!(agents.prompts(0), ["how is Paris?"], "nothing was told twice");
    assert_eq!(agents.opened(), 1);
}

#[tokio::test]
async fn calls_stream_with_their_place_and_the_stream_of_the_result_goes_on() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_calls_at_once(&agents, &tools).await;
    let client = Client::with("compare", json!({"tools": [tool("weather")], "stream": true}));
    let request = client.request();
    let (stream, ()) = tokio::join!(server.stream(&request), async {
        agents.until_prompted(0).await;
        agents.does(0, [text("Let me see. ")]).await;
    });
    let mut stream = stream;
    stream.until("Let me see. ").await;
    let paris = tools.call(0, "weather", &json!({"city": "Paris"})).await;
    let rome = tools.call(0, "weather", &json!({"city": "Rome"})).await;
    let answer = stream.whole().await;
    let chunks = answer.chunks();
    let deltas: Vec<Value> = chunks.iter().map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].clone()).collect();
    let calls: Vec<&Value> = deltas.iter().filter(|calls| !calls.is_null()).map(|calls| &calls[0]).collect();
    assert_eq!(calls.iter().map(|call| call["index"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(calls[1]["function"]["arguments"], r#"{"city":"Rome"}"#);
    assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(answer.streamed(0), "Let me see. ");

    let mut messages = client.messages.clone();
    let id = |at: usize| calls[at]["id"].as_str().unwrap();
    messages.push(json!({"role": "assistant", "content": "Let me see. ", "tool_calls": [calls[0], calls[1]]}));
    messages.push(json!({"role": "tool", "tool_call_id": id(1), "content": "wet"}));
    messages.push(json!({"role": "tool", "tool_call_id": id(0), "content": [{"type": "text", "text": "dry"}]}));
    let request = json!({"model": "played", "messages": messages, "stream": true, "tools": [tool("weather")]});
    let (answer, ()) = tokio::join!(async { server.stream(&request).await.whole().await }, async {
        assert_eq!((paris.text().await, rome.text().await), ("dry".into(), "wet".into()));
        agents.does(0, [text("Paris."), done()]).await;
    });
    assert_eq!(answer.streamed(0), "Paris.");
}

#[tokio::test]
async fn twenty_turns_with_tools_are_one_session_of_the_agent() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut client = Client::new("round 0");
    for round in 0..20 {
        let request = client.request();
        let (answer, waiting) = tokio::join!(server.ask(&request), async {
            prompted(&agents, 0, round + 1).await;
            tools.call(0, "time", &json!({"city": "Rome"})).await
        });
        let id = &ids(&answer)[0];
        let request = client.keep(&answer).result(id, format!("{round} o'clock")).request();
        let (answer, ()) = tokio::join!(server.ask(&request), async {
            assert_eq!(waiting.text().await, format!("{round} o'clock"));
            agents.does(0, [text("done "), text(&round.to_string()), done()]).await;
        });
        assert_eq!(answer.text(), format!("done {round}"));
        client.keep(&answer).says(&format!("round {}", round + 1));
    }
    assert_eq!(agents.opened(), 1);
    assert_eq!(agents.prompts(0)[19], "round 19");
    assert_eq!(tools.places(), 1);
}

#[tokio::test]
async fn many_rounds_in_one_turn_are_answered_one_after_another() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut client = Client::new("count");
    let (mut answer, mut waiting) = called(&server, &agents, &tools, &client).await;
    for round in 0..25 {
        let id = &ids(&answer)[0];
        let request = client.keep(&answer).result(id, round.to_string()).request();
        (answer, waiting) = tokio::join!(server.ask(&request), async {
            assert_eq!(waiting.text().await, round.to_string());
            tools.call(0, "weather", &json!({"city": round.to_string()})).await
        });
    }
    let request = client.keep(&answer).result(&ids(&answer)[0], "last").request();
    let (answer, ()) = tokio::join!(server.ask(&request), async {
        assert_eq!(waiting.text().await, "last");
        agents.does(0, [text("counted"), done()]).await;
    });
    assert_eq!(answer.text(), "counted");
    assert_eq!((agents.opened(), agents.prompts(0).len()), (1, 1));
}

#[tokio::test]
async fn calls_come_one_by_one_to_a_client_that_wants_them_so() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_calls_at_once(&agents, &tools).await;
    let mut client = Client::with("both", json!({"tools": [tool("weather")], "parallel_tool_calls": false}));
    let request = client.request();
    let (answer, waiting) = tokio::join!(server.ask(&request), async {
        agents.until_prompted(0).await;
        let first = tools.call(0, "weather", &json!({"city": "Paris"})).await;
        [first, tools.call(0, "weather", &json!({"city": "Rome"})).await]
    });
    assert_eq!(ids(&answer).len(), 1);
    assert_eq!(answer.header("x-gembridge-ignored"), None);
    let [paris, rome] = waiting;
    let request = client.keep(&answer).result(&ids(&answer)[0], "dry").request();
    let answer = server.ask(&request).await;
    assert_eq!(paris.text().await, "dry");
    let function = &answer.json()["choices"][0]["message"]["tool_calls"][0]["function"];
    assert_eq!(function["arguments"], r#"{"city":"Rome"}"#);
    let request = client.keep(&answer).result(&ids(&answer)[0], "wet").request();
    let (answer, ()) = tokio::join!(server.ask(&request), async {
        assert_eq!(rome.text().await, "wet");
        agents.does(0, [text("done"), done()]).await;
    });
    assert_eq!(answer.text(), "done");
}

#[tokio::test]
async fn what_has_no_result_yet_is_told_again() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_calls_at_once(&agents, &tools).await;
    let mut client = Client::new("both");
    let request = client.request();
    let (answer, [paris, _rome]) = tokio::join!(server.ask(&request), async {
        agents.until_prompted(0).await;
        let first = tools.call(0, "weather", &json!({"city": "Paris"})).await;
        [first, tools.call(0, "time", &json!({"city": "Rome"})).await]
    });
    let both = ids(&answer);
    let request = client.keep(&answer).result(&both[0], "dry").request();
    let answer = server.ask(&request).await;
    assert_eq!(paris.text().await, "dry");
    assert_eq!(ids(&answer), both[1..]);
    assert_eq!(answer.json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "time");
}

#[tokio::test]
async fn what_a_client_says_after_its_results_goes_in_with_the_last_of_them() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_calls_at_once(&agents, &tools).await;
    let mut client = Client::new("both");
    let request = client.request();
    let (answer, [paris, rome]) = tokio::join!(server.ask(&request), async {
        agents.until_prompted(0).await;
        let first = tools.call(0, "weather", &json!({"city": "Paris"})).await;
        [first, tools.call(0, "weather", &json!({"city": "Rome"})).await]
    });
    let request = client.keep(&answer).result(&ids(&answer)[0], "dry").says("never mind Rome").request();
    let (answer, ()) = tokio::join!(server.ask(&request), async {
        assert_eq!(paris.text().await, "dry");
        let rome = rome.result().await;
        assert_eq!(rome.outcome, ReturnOutcome::Failed);
        let failed = Content::text("the client went on without a result for this call");
        assert_eq!(rome.content, [failed, Content::text("[User]\nnever mind Rome")]);
        agents.does(0, [text("dry"), done()]).await;
    });
    assert_eq!(answer.text(), "dry");
    assert_eq!(agents.opened(), 1);
}

#[tokio::test]
async fn a_client_that_says_something_else_instead_of_a_result_is_heard() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut client = Client::new("how is Paris?");
    let (answer, waiting) = called(&server, &agents, &tools, &client).await;
    let request = client.keep(&answer).says("forget it").request();
    let (answer, ()) = tokio::join!(server.ask(&request), async {
        assert!(waiting.text().await.ends_with("|[User]\nforget it"));
        agents.does(0, [text("forgotten"), done()]).await;
    });
    assert_eq!(answer.text(), "forgotten");
}

#[tokio::test]
async fn results_with_images_reach_the_agent() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut client = Client::new("how is Paris?");
    let (answer, waiting) = called(&server, &agents, &tools, &client).await;
    let parts = json!([
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0="}},
    ]);
    let request = client.keep(&answer).result(&ids(&answer)[0], parts).request();
    let (answer, ()) = tokio::join!(server.ask(&request), async {
        let image = Content::Image { mime: "image/png".into(), data: "iVBORw0=".into(), uri: None };
        assert_eq!(waiting.result().await.content, [Content::text("look"), image]);
        agents.does(0, [text("seen"), done()]).await;
    });
    assert_eq!(answer.text(), "seen");
}

#[tokio::test]
async fn the_same_results_again_join_the_answer_that_runs_and_the_one_that_ended() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut client = Client::new("how is Paris?");
    let (answer, waiting) = called(&server, &agents, &tools, &client).await;
    let request = client.keep(&answer).result(&ids(&answer)[0], "sunny").request();
    let (first, again, ()) = tokio::join!(server.ask(&request), server.ask(&request), async {
        assert_eq!(waiting.text().await, "sunny");
        agents.does(0, [text("It is "), text("sunny."), done()]).await;
    });
    assert_eq!((first.text(), again.text()), ("It is sunny.".into(), "It is sunny.".into()));
    assert_eq!(server.ask(&request).await.text(), "It is sunny.");
    assert_eq!((agents.opened(), agents.prompts(0).len()), (1, 1));
}

#[tokio::test]
async fn a_turn_that_waits_outlives_the_answer_but_not_a_client_that_left_before() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let client = Client::new("how is Paris?");
    let (answer, waiting) = called(&server, &agents, &tools, &client).await;
    assert_eq!(ids(&answer).len(), 1);
    server.exchanges.settle().await;
    assert!(!agents.orders(0).contains(&Order::Cancel), "{:?}", agents.orders(0));
    let request = client.request();
    tokio::select! {
        _ = server.ask(&request) => panic!("nobody answers"),
        () = agents.until_prompted(1) => {}
    }
    agents.until_cancelled(1).await;
    assert!(!agents.orders(0).contains(&Order::Cancel), "{:?}", agents.orders(0));
    drop(waiting);
}

#[tokio::test]
async fn a_named_session_takes_tools_and_their_results() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut client = Client::new("how is Paris?");
    let (answer, waiting) = called(&server, &agents, &tools, &client).await;
    let session = answer.header("x-session-id").unwrap().to_owned();
    let pin = [("x-session-id", session.as_str())];
    let request = client.keep(&answer).result(&ids(&answer)[0], "sunny").request();
    let (answer, ()) = tokio::join!(server.ask_as("ann", &pin, &request), async {
        assert_eq!(waiting.text().await, "sunny");
        agents.does(0, [text("It is."), done()]).await;
    });
    assert_eq!(answer.text(), "It is.");
    let request = client.keep(&answer).says("and now?").request();
    let (answer, _waiting) = tokio::join!(server.ask_as("ann", &pin, &request), async {
        prompted(&agents, 0, 2).await;
        tools.call(0, "time", &json!({"city": "Paris"})).await
    });
    assert_eq!(ids(&answer).len(), 1);
    assert_eq!(answer.header("x-session-id"), Some(session.as_str()));
}

#[tokio::test]
async fn a_client_that_goes_on_with_a_named_session_instead_of_giving_results_is_heard_at_once() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let (answer, waiting) = called(&server, &agents, &tools, &Client::new("how is Paris?")).await;
    let session = answer.header("x-session-id").unwrap().to_owned();
    let pin = [("x-session-id", session.as_str())];
    let request = Client::new("never mind, how is Rome?").request();
    let (answer, ()) = tokio::join!(server.ask_as("ann", &pin, &request), async {
        let result = waiting.result().await;
        assert_eq!(result.outcome, ReturnOutcome::Failed);
        assert!(format!("{result:?}").contains("never mind, how is Rome?"), "{result:?}");
        agents.does(0, [text("Rome is fine."), done()]).await;
    });
    assert_eq!(answer.text(), "Rome is fine.");
    assert_eq!(answer.header("x-session-id"), Some(session.as_str()));
}

#[tokio::test]
async fn the_tools_that_come_with_results_are_the_ones_that_may_be_called_next() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut client = Client::new("how is Paris?");
    let (answer, waiting) = called(&server, &agents, &tools, &client).await;
    client.fields = json!({"tools": [tool("map")]});
    let request = client.keep(&answer).result(&ids(&answer)[0], "sunny").request();
    let (answer, waiting) = tokio::join!(server.ask(&request), async {
        assert_eq!(waiting.text().await, "sunny");
        assert_eq!(tools.offered(0), ["map"], "before it hears the result");
        tools.call(0, "map", &json!({"city": "Paris"})).await
    });
    client.fields = json!({});
    let request = client.keep(&answer).result(&ids(&answer)[0], "a map").request();
    let (answer, ()) = tokio::join!(server.ask(&request), async {
        assert_eq!(waiting.text().await, "a map");
        let unwanted = tools.call(0, "map", &json!({"city": "Rome"})).await;
        assert!(unwanted.text().await.contains("does not offer `map` any more"));
        agents.does(0, [text("There."), done()]).await;
    });
    assert_eq!(answer.text(), "There.");
}

#[tokio::test]
async fn two_answers_call_each_in_a_session_of_its_own() {
    let (agents, tools) = (idle(), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let mut client = Client::with("twice", json!({"tools": [tool("weather")], "n": 2}));
    let request = client.request();
    let (answer, (_first, second)) = tokio::join!(server.ask(&request), async {
        agents.until_prompted(0).await;
        agents.until_prompted(1).await;
        let first = tools.call(0, "weather", &json!({"city": "Paris"})).await;
        (first, tools.call(1, "weather", &json!({"city": "Rome"})).await)
    });
    let chosen = answer.json()["choices"][1]["message"].clone();
    client.messages.push(chosen.clone());
    client.fields = json!({"tools": [tool("weather")]});
    let request = client.result(chosen["tool_calls"][0]["id"].as_str().unwrap(), "wet").request();
    let agent = usize::from(chosen["tool_calls"][0]["function"]["arguments"] != r#"{"city":"Paris"}"#);
    assert_eq!(agent, 1, "agents and answers are begun in one order");
    let (answer, ()) = tokio::join!(server.ask(&request), async {
        assert_eq!(second.text().await, "wet");
        agents.does(1, [text("wet"), done()]).await;
    });
    assert_eq!(answer.text(), "wet");
}

#[tokio::test]
async fn tools_that_come_later_reach_a_session_that_can_take_them() {
    let (agents, tools) = (ScriptedAgents::new(|_| vec![vec![text("ok"), done()]]), FakeTools::new());
    let setting = ServerSetup { tools: Some(Arc::clone(&tools)), ..ServerSetup::default() };
    let server = TestServer::with(&[("played", &agents)], setting).await;
    let mut client = Client::with("plain", json!({}));
    let answer = server.ask(&client.request()).await;
    assert_eq!((answer.text(), tools.places()), ("ok".into(), 0));
    // Its agent knows of no tool server: another hears the history, and has one.
    client.keep(&answer).says("with tools").fields = json!({"tools": [tool("weather")]});
    let answer = server.ask(&client.request()).await;
    assert_eq!(answer.text(), "ok");
    assert_eq!(agents.prompts(1), ["[User]\nplain\n\n[Assistant]\nok\n\n[User]\nwith tools"]);
    assert_eq!(tools.offered(0), ["weather"]);
    // From there on the set may change.
    client.keep(&answer).says("with others").fields = json!({"tools": [tool("time")]});
    let answer = server.ask(&client.request()).await;
    assert_eq!((answer.text(), agents.opened()), ("ok".into(), 2));
    assert_eq!(tools.offered(0), ["time"]);
    client.keep(&answer).says("without").fields = json!({});
    assert_eq!(server.ask(&client.request()).await.text(), "ok");
    assert_eq!((tools.offered(0), agents.opened()), (vec![], 2));
}
