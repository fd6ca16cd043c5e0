//! The real A2A server of Gemini CLI behind the OpenAI API, asking a fake of its model.

use gembridge_testkit::gemini_api::FakeGemini;
use gembridge_testkit::real_gemini_a2a_server;
use serde_json::{Value, json};

use crate::support::gateway::{Gateway, post, said};
use crate::support::home::Home;

/// Dropped in this order: the server ends before the model that it asks.
struct Served {
    gateway: Gateway,
    _model: FakeGemini,
    _runtime: tokio::runtime::Runtime,
}

fn served() -> Served {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let model = runtime.block_on(FakeGemini::start()).unwrap();
    let home = Home::for_serving();
    let program = real_gemini_a2a_server();
    home.configure_serving(&format!(
        "[agents.gemini-a2a]\ncommand = '{}'\nlimits = {{ start_seconds = 150 }}\n",
        program.display()
    ));
    let (path, url) = (std::env::var("PATH").unwrap(), model.url());
    let variables = [("PATH", path.as_str()), ("GEMINI_API_KEY", "fake-key"), ("GOOGLE_GEMINI_BASE_URL", &url)];
    let gateway = home.serve_with(&["--agent", "gemini-a2a"], &variables);
    Served { gateway, _model: model, _runtime: runtime }
}

fn complete(gateway: &Gateway, body: &Value) -> Value {
    let mut connection = gateway.connect();
    post(&mut connection, &gateway.key, body, &[]);
    let answer = connection.answer().unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

#[test]
fn turns_streams_and_tools_of_the_client_work_and_the_server_ends_with_the_gateway() {
    let mut served = served();
    let gateway = &served.gateway;
    let first = gateway.complete_as(&gateway.key, &said("one"), &[]);
    assert_eq!((first.status, first.text().as_str()), (200, "You said: one"), "{}", first.body);
    let history = json!([
        { "role": "user", "content": "one" },
        { "role": "assistant", "content": "You said: one" },
        { "role": "user", "content": "two" },
    ]);
    let second = gateway.complete_as(&gateway.key, &history, &[]);
    assert_eq!((second.status, second.text().as_str()), (200, "You said: two"), "{}", second.body);
    assert_eq!(second.header("x-session-id"), first.header("x-session-id"));
    let mut events = gateway.stream("three");
    let mut streamed = String::new();
    while let Some(event) = events.next().unwrap() {
        streamed.push_str(&event);
    }
    assert!(streamed.contains("three") && streamed.contains("[DONE]"), "{streamed}");

    let call = json!([[{ "call": { "name": "pick", "id": "c1", "args": { "n": 7 } } }], [{ "text": "done" }]]);
    let prompt = format!("please SCRIPT:{}:END", json!({ "calls": call }));
    let tools = json!([{ "type": "function", "function": { "name": "pick", "parameters": { "type": "object" } } }]);
    let mut messages = vec![json!({ "role": "user", "content": prompt })];
    let model = "gemini-a2a";
    let asked = complete(gateway, &json!({ "model": model, "messages": messages, "tools": tools }));
    let said = asked["choices"][0]["message"].clone();
    let call = said["tool_calls"][0].clone();
    assert_eq!(
        (&call["function"]["name"], &asked["choices"][0]["finish_reason"]),
        (&json!("pick"), &json!("tool_calls"))
    );
    messages.push(said);
    messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": "a plum" }));
    let answered = complete(gateway, &json!({ "model": model, "messages": messages, "tools": tools }));
    assert_eq!(answered["choices"][0]["message"]["content"], "done", "{answered}");

    let tag = served.gateway.home.folder().display().to_string();
    let running = gembridge_testkit::processes_with_tag(&tag);
    assert!(running.len() > 2, "the gateway, the guard and the server: {running:?}");
    served.gateway.signal(rustix::process::Signal::KILL);
    served.gateway.ended();
    served.gateway.wait_for("the server's tree is gone", |_| {
        gembridge_testkit::processes_with_tag(&tag).is_empty().then_some(())
    });
}
