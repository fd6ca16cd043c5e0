//! One list of scenarios over every dialect of clients that keep their own history. A new dialect adds one [`Api`].

mod plain_text;

use std::net::SocketAddr;
use std::sync::Arc;

use gembridge_core::admission::AdmissionLimits;
use gembridge_core::driver::Signal;
use gembridge_core::model::{Failure, FailureKind};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::agents::{Order, ScriptedAgents};
use crate::support::http::{Stream, post};
use crate::support::server::{ServerSetup, TestServer};
use crate::support::tools::FakeTools;
use crate::support::{done, text, thought};

/// What a client says, in no dialect.
#[derive(Default)]
struct Ask {
    messages: Vec<Said>,
    tools: Vec<&'static str>,
    json: bool,
}

enum Said {
    User(&'static str),
    Assistant(&'static str),
    Called(Vec<Called>),
    Result { id: String, text: &'static str },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Called {
    id: String,
    tool: String,
    arguments: String,
}

#[derive(Debug, Default)]
struct Answered {
    status: u16,
    text: String,
    thoughts: String,
    calls: Vec<Called>,
    finish: String,
    /// The error, before the answer or in the middle of it.
    error: Option<String>,
}

/// A dialect as its clients see it.
trait Api {
    async fn new(server: &TestServer) -> Self;
    /// Sends a request; the body is still to be read.
    async fn send(&self, ask: &Ask) -> Stream;
    fn read(&self, status: u16, body: &str) -> Answered;

    async fn ask(&self, ask: &Ask) -> Answered {
        let answer = self.send(ask).await.whole().await;
        self.read(answer.status, &answer.body)
    }
}

fn user(text: &'static str) -> Ask {
    Ask { messages: vec![Said::User(text)], ..Ask::default() }
}

/// OpenAI's chat completions, whole and as a stream.
struct OpenAi<const STREAM: bool>(SocketAddr);

impl<const STREAM: bool> Api for OpenAi<STREAM> {
    async fn new(server: &TestServer) -> Self {
        Self(server.address)
    }

    async fn send(&self, ask: &Ask) -> Stream {
        let call = |called: &Called| {
            let function = json!({ "name": called.tool, "arguments": called.arguments });
            json!({ "id": called.id, "type": "function", "function": function })
        };
        let message = |said: &Said| match said {
            Said::User(text) => json!({ "role": "user", "content": text }),
            Said::Assistant(text) => json!({ "role": "assistant", "content": text }),
            Said::Called(calls) => {
                json!({ "role": "assistant", "tool_calls": calls.iter().map(call).collect::<Vec<_>>() })
            }
            Said::Result { id, text } => json!({ "role": "tool", "tool_call_id": id, "content": text }),
        };
        let messages: Vec<Value> = ask.messages.iter().map(message).collect();
        let mut request = json!({ "model": "played", "messages": messages, "stream": STREAM });
        if !ask.tools.is_empty() {
            let tool = |name: &&str| json!({ "type": "function", "function": { "name": name } });
            request["tools"] = ask.tools.iter().map(tool).collect();
        }
        if ask.json {
            request["response_format"] = json!({ "type": "json_object" });
        }
        post(self.0, "/v1/chat/completions", &[], request.to_string()).await
    }

    fn read(&self, status: u16, body: &str) -> Answered {
        let mut answered = Answered { status, ..Answered::default() };
        let events: Vec<Value> = match status {
            200 if STREAM => {
                let events = body.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
                events.filter_map(|event| serde_json::from_str(event).ok()).collect()
            }
            _ => vec![serde_json::from_str(body).expect("JSON")],
        };
        for event in &events {
            if let Some(message) = event["error"]["message"].as_str() {
                answered.error = Some(message.to_owned());
            }
            let choice = &event["choices"][0];
            let message = if STREAM { &choice["delta"] } else { &choice["message"] };
            answered.text += message["content"].as_str().unwrap_or_default();
            answered.thoughts += message["reasoning_content"].as_str().unwrap_or_default();
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let field = |value: &Value| value.as_str().expect("a string").to_owned();
                let (tool, arguments) = (field(&call["function"]["name"]), field(&call["function"]["arguments"]));
                answered.calls.push(Called { id: field(&call["id"]), tool, arguments });
            }
            answered.finish += choice["finish_reason"].as_str().unwrap_or_default();
        }
        answered
    }
}

/// The dialect of [`plain_text`].
struct PlainText {
    address: SocketAddr,
    _server: JoinSet<()>,
}

impl Api for PlainText {
    async fn new(server: &TestServer) -> Self {
        let (address, server) = plain_text::serve(Arc::clone(&server.exchanges)).await;
        Self { address, _server: server }
    }

    async fn send(&self, ask: &Ask) -> Stream {
        let mut lines = Vec::new();
        for said in &ask.messages {
            match said {
                Said::User(text) => lines.push(format!("user: {text}")),
                Said::Assistant(text) => lines.push(format!("assistant: {text}")),
                Said::Called(calls) => {
                    lines.extend(
                        calls.iter().map(|call| format!("called {} {}: {}", call.id, call.tool, call.arguments)),
                    );
                }
                Said::Result { id, text } => lines.push(format!("result {id}: {text}")),
            }
        }
        let tools = ask.tools.join(",");
        let mut headers = vec![("x-tools", tools.as_str())];
        if ask.json {
            headers.push(("x-json", "1"));
        }
        post(self.address, "/plain", &headers, lines.join("\n")).await
    }

    fn read(&self, status: u16, body: &str) -> Answered {
        let mut answered = Answered { status, ..Answered::default() };
        if status != 200 {
            return Answered { error: Some(body.to_owned()), ..answered };
        }
        for line in body.lines() {
            let (kind, rest) = line.split_once(' ').expect("a kind");
            match kind {
                "text" => answered.text += rest,
                "thought" => answered.thoughts += rest,
                "end" => answered.finish += rest,
                "error" => answered.error = Some(rest.to_owned()),
                "call" => {
                    let mut words = rest.splitn(3, ' ').map(str::to_owned);
                    let mut next = || words.next().expect("three words");
                    answered.calls.push(Called { id: next(), tool: next(), arguments: next() });
                }
                other => panic!("`{other}` is no kind of line"),
            }
        }
        answered
    }
}

async fn answers_what_was_asked<A: Api>() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("hel"), text("lo"), done()]]);
    let server = TestServer::new(&agents).await;
    let answered = A::new(&server).await.ask(&user("hi")).await;
    assert_eq!((answered.status, answered.text.as_str(), answered.finish.as_str()), (200, "hello", "stop"));
    assert_eq!(agents.prompts(0), ["hi"]);
}

async fn thoughts_are_apart_from_the_text<A: Api>() {
    let agents = ScriptedAgents::new(|_| vec![vec![thought("hm"), text("yes"), done()]]);
    let server = TestServer::new(&agents).await;
    let answered = A::new(&server).await.ask(&user("hi")).await;
    assert_eq!((answered.thoughts.as_str(), answered.text.as_str()), ("hm", "yes"));
}

async fn a_history_goes_on_in_its_session<A: Api>() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a"), done()]]);
    let server = TestServer::new(&agents).await;
    let api = A::new(&server).await;
    api.ask(&user("one")).await;
    let messages = vec![Said::User("one"), Said::Assistant("a"), Said::User("two")];
    assert_eq!(api.ask(&Ask { messages, ..Ask::default() }).await.text, "a");
    assert_eq!(agents.prompts(0), ["one", "two"], "the agent hears what is new");
}

async fn a_tool_round_goes_through_one_turn<A: Api>() {
    let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
    let server = TestServer::with_tools(&agents, &tools).await;
    let api = A::new(&server).await;
    let first = Ask { tools: vec!["weather"], ..user("how is Paris?") };
    let (answered, waiting) = tokio::join!(api.ask(&first), async {
        agents.until_prompted(0).await;
        tools.call(0, "weather", &json!({"city": "Paris"})).await
    });
    assert_eq!((answered.finish.as_str(), answered.calls.len()), ("tool_calls", 1));
    assert_eq!(answered.calls[0].tool, "weather");
    let id = answered.calls[0].id.clone();
    let result = Said::Result { id, text: "sunny" };
    let messages = vec![Said::User("how is Paris?"), Said::Called(answered.calls), result];
    let second = Ask { messages, tools: vec!["weather"], ..Ask::default() };
    let (answered, ()) = tokio::join!(api.ask(&second), async {
        assert_eq!(waiting.text().await, "sunny");
        agents.does(0, [text("It is sunny."), done()]).await;
    });
    assert_eq!((answered.text.as_str(), answered.finish.as_str()), ("It is sunny.", "stop"));
    assert_eq!(agents.prompts(0), ["how is Paris?"], "nothing was told twice");
}

async fn calls_at_once_come_in_one_answer<A: Api>() {
    let (agents, tools) = (ScriptedAgents::new(|_| vec![]), FakeTools::new());
    let server = TestServer::with_calls_at_once(&agents, &tools).await;
    let api = A::new(&server).await;
    let ask = Ask { tools: vec!["weather", "time"], ..user("compare") };
    let (answered, _waiting) = tokio::join!(api.ask(&ask), async {
        agents.until_prompted(0).await;
        let one = tools.call(0, "weather", &json!({})).await;
        (one, tools.call(0, "time", &json!({})).await)
    });
    let names: Vec<&str> = answered.calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(names, ["weather", "time"]);
}

async fn a_wrong_form_is_repaired_before_the_client_sees_it<A: Api>() {
    let agents = ScriptedAgents::new(|prompted| {
        let said = if prompted.prompt.contains("was not used") { r#"{"a":1}"# } else { "well" };
        vec![vec![text(said), done()]]
    });
    let server = TestServer::with_tools(&agents, &FakeTools::new()).await;
    let answered = A::new(&server).await.ask(&Ask { json: true, ..user("an object") }).await;
    assert_eq!((answered.text.as_str(), answered.finish.as_str()), (r#"{"a":1}"#, "stop"));
}

async fn a_client_that_leaves_cancels_its_turn<A: Api>() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a")]]);
    let server = TestServer::new(&agents).await;
    let api = A::new(&server).await;
    let ask = user("hi");
    // A stream has begun by then and a whole answer has not: either way the connection goes.
    tokio::select! {
        stream = api.send(&ask) => drop(stream),
        () = agents.until_prompted(0) => {}
    }
    agents.until("a cancel", |agents| agents.orders(0).contains(&Order::Cancel)).await;
}

async fn an_agent_that_dies_in_the_middle_is_told_behind_what_came<A: Api>() {
    let lost = || Signal::Lost(Failure::new(FailureKind::Crashed, "the agent died"));
    let agents = ScriptedAgents::new(move |_| vec![vec![text("half"), lost()]]);
    let server = TestServer::new(&agents).await;
    let answered = A::new(&server).await.ask(&user("hi")).await;
    let told = answered.error.expect("the client is told");
    assert!(told.contains("the agent died"), "{told}");
    assert!(answered.status == 502 || answered.text == "half", "{} {}", answered.status, answered.text);
}

async fn a_full_queue_is_refused<A: Api>() {
    let agents = ScriptedAgents::new(|_| vec![vec![text("a")]]);
    let admission = AdmissionLimits { running: 1, waiting: 0, ..AdmissionLimits::default() };
    let server = TestServer::with(&[("played", &agents)], ServerSetup { admission, ..ServerSetup::default() }).await;
    let api = A::new(&server).await;
    let (first, second) = (user("long"), user("me too"));
    let (first, ()) = tokio::join!(api.ask(&first), async {
        agents.until_prompted(0).await;
        let refused = api.ask(&second).await;
        assert_eq!(refused.status, 429, "{:?}", refused.error);
        agents.does(0, [done()]).await;
    });
    assert_eq!((first.status, first.text.as_str()), (200, "a"));
}

macro_rules! scenarios {
    ($($scenario:ident),* $(,)?) => {
        mod openai_whole { $(#[tokio::test] async fn $scenario() { super::$scenario::<super::OpenAi<false>>().await })* }
        mod openai_stream { $(#[tokio::test] async fn $scenario() { super::$scenario::<super::OpenAi<true>>().await })* }
        mod plain_text_api { $(#[tokio::test] async fn $scenario() { super::$scenario::<super::PlainText>().await })* }
    };
}

scenarios!(
    answers_what_was_asked,
    thoughts_are_apart_from_the_text,
    a_history_goes_on_in_its_session,
    a_tool_round_goes_through_one_turn,
    calls_at_once_come_in_one_answer,
    a_wrong_form_is_repaired_before_the_client_sees_it,
    a_client_that_leaves_cancels_its_turn,
    an_agent_that_dies_in_the_middle_is_told_behind_what_came,
    a_full_queue_is_refused,
);
