//! Everything that clients are told, held against the published schema: every kind of update, question and refusal.

use serde_json::{Value, json};

use crate::schema::Published;
use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::websocket::Client;

/// A client whose every message is checked.
struct Watched<'a> {
    client: Client,
    published: &'a Published,
    /// What kinds of updates and which methods came.
    kinds: std::collections::BTreeSet<String>,
}

impl<'a> Watched<'a> {
    fn known(gateway: &Gateway, path: &str, published: &'a Published) -> Self {
        let client = Client::connect(gateway, path);
        let mut watched = Self { client, published, kinds: std::collections::BTreeSet::new() };
        let capabilities = json!({
            "fs": { "readTextFile": true, "writeTextFile": true },
            "terminal": true,
            "elicitation": { "form": {} },
            "session": { "notices": {}, "compaction": {} },
        });
        let meta = json!({ "gembridge": { "extensions": true } });
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": capabilities, "_meta": meta });
        watched.call("initialize", &hello).unwrap();
        watched
    }

    fn take(&mut self, asked: &str, id: u64) -> Option<Result<Value, Value>> {
        let message = self.client.next().unwrap();
        let is_answer = message.get("method").is_none();
        assert!(!is_answer || message["id"] == id || message["id"].is_null(), "{message}");
        self.published.check(&message, is_answer.then_some(asked));
        let method = message["method"].as_str().unwrap_or_default();
        let kind = message["params"]["update"]["sessionUpdate"].as_str().unwrap_or(method);
        self.kinds.insert(kind.to_owned());
        match method {
            "session/request_permission" => {
                let option = message["params"]["options"][0]["optionId"].clone();
                self.answer(&message, &json!({ "outcome": { "outcome": "selected", "optionId": option } }));
            }
            "elicitation/create" => self.answer(&message, &json!({ "action": "accept", "content": { "name": "Ann" } })),
            _ => {}
        }
        is_answer.then(|| match message.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(message["result"].clone()),
        })
    }

    fn answer(&mut self, question: &Value, result: &Value) {
        self.client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }));
    }

    fn call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let id = self.client.request(method, params);
        loop {
            if let Some(answer) = self.take(method, id) {
                return answer;
            }
        }
    }

    fn prompt(&mut self, session: &str, text: &str) -> Result<Value, Value> {
        self.call("session/prompt", &json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] }))
    }

    fn new_session(&mut self, cwd: &Value) -> String {
        let new = self.call("session/new", &json!({ "cwd": cwd, "mcpServers": [] })).unwrap();
        new["sessionId"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn has_met(&self, kinds: &[&str]) {
        let missing: Vec<_> = kinds.iter().filter(|kind| !self.kinds.contains(**kind)).collect();
        assert!(missing.is_empty(), "{missing:?} never came, but {:?}", self.kinds);
    }
}

#[test]
fn all_that_the_demo_agent_shows_is_told_as_published_live_and_again() {
    let published = Published::load();
    let home = crate::libraries::home("demo", "");
    std::fs::write(home.path("workspace/notes.txt"), "some notes\n").unwrap();
    let workspace = json!(home.path("workspace"));
    let gateway = home.serve();
    let mut client = Watched::known(&gateway, "/acp", &published);
    let session = client.new_session(&workspace);
    for prompt in [
        "help",
        "think about rivers",
        "tool",
        "edit",
        "plan",
        "permission make demo",
        "image",
        "markdown hostile",
        "unicode",
        "usage",
        "elicit",
        "read notes.txt",
        "write more.txt words",
        "terminal echo words",
        "refuse",
        "max_tokens",
        "max_turns",
    ] {
        client.prompt(&session, prompt).unwrap_or_else(|error| panic!("{prompt}: {error}"));
    }
    client.prompt(&session, "error 7 boom").unwrap_err();
    client.prompt(&session, "crash 2").unwrap_err();
    client.prompt(&session, "hello").unwrap();
    let blocks = json!([
        { "type": "text", "text": "look" },
        { "type": "image", "mimeType": "image/png", "data": "aGVsbG8=" },
        { "type": "audio", "mimeType": "audio/wav", "data": "aGVsbG8=" },
        { "type": "resource_link", "name": "notes", "uri": "file:///notes.txt" },
        { "type": "resource", "resource": { "uri": "file:///a.txt", "text": "words" } },
        { "type": "resource", "resource": { "uri": "file:///b", "blob": "aGVsbG8=" } },
    ]);
    client.call("session/prompt", &json!({ "sessionId": session, "prompt": blocks })).unwrap();
    client.call("session/set_mode", &json!({ "sessionId": session, "modeId": "yolo" })).unwrap();
    client.call("session/set_model", &json!({ "sessionId": session, "modelId": "demo-story" })).unwrap();
    let option = json!({ "sessionId": session, "configId": "model", "value": "demo-echo" });
    client.call("session/set_config_option", &option).unwrap();
    client.call("_gembridge/rename", &json!({ "sessionId": session, "title": "Rivers" })).unwrap();
    client.prompt(&session, "after all that").unwrap();
    client.has_met(&[
        "agent_message_chunk",
        "agent_thought_chunk",
        "available_commands_update",
        "config_option_update",
        "current_mode_update",
        "elicitation/create",
        "plan",
        "session/request_permission",
        "session_info_update",
        "tool_call",
        "tool_call_update",
        "usage_update",
        "_gembridge/agent_replaced",
        "_gembridge/request_resolved",
        "_gembridge/turn_ended",
    ]);

    let mut other = Watched::known(&gateway, "/acp", &published);
    other.call("session/list", &json!({})).unwrap();
    other.call("session/load", &json!({ "sessionId": session, "cwd": workspace, "mcpServers": [] })).unwrap();
    other.has_met(&["user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call_update", "plan"]);
    other.call("session/resume", &json!({ "sessionId": session, "cwd": workspace, "mcpServers": [] })).unwrap();
    other.call("session/close", &json!({ "sessionId": session })).unwrap();
    other.call("session/delete", &json!({ "sessionId": session })).unwrap();
}

/// What an agent says beyond the schema is passed on as it is, and is no part of this.
#[test]
fn all_that_the_fake_agent_shows_is_told_as_published_live_and_again() {
    let published = Published::load();
    let program = gembridge_testkit::fake_agent_path();
    let home = crate::libraries::home("fake", &format!("command = {:?}", program.to_str().unwrap()));
    let workspace = json!(home.path("workspace"));
    std::fs::write(home.path("workspace/notes.txt"), "some notes\n").unwrap();
    let gateway = home.serve_fake();
    let mut client = Watched::known(&gateway, "/acp", &published);
    let session = client.new_session(&workspace);
    for prompt in [
        "think of it ;; say words ;; chunks 3",
        "content image ;; content audio ;; content resource_link ;; content resource",
        "tool read Look => found ;; tool-fail execute Run ;; diff a.txt old => new",
        "permission Make it",
        "permission only-always Make it",
        "permission no-options Make it",
        "permission withdrawn Make it",
        "read notes.txt ;; write more.txt words ;; terminal echo words",
        "elicit",
        "notify",
        "plan A | B | C ;; mode plan ;; title Words ;; commands",
        "usage ;; say words",
        "usage-quota ;; say words",
        "usage-chunk ;; usage-update",
        "unknown-stop",
        "stop refusal",
    ] {
        client.prompt(&session, prompt).unwrap_or_else(|error| panic!("{prompt}: {error}"));
    }
    client.prompt(&session, "error -32603 broken").unwrap_err();
    client.prompt(&session, "abort").unwrap_err();
    client.has_met(&["elicitation/create", "session/request_permission", "session_info_update", "usage_update"]);
    let mut other = Watched::known(&gateway, "/acp", &published);
    other.call("session/load", &json!({ "sessionId": session, "cwd": workspace, "mcpServers": [] })).unwrap();
    other.has_met(&["plan", "tool_call", "user_message_chunk"]);
}

#[test]
fn what_departs_from_the_schema_is_found() {
    let published = Published::load();
    let update = |update: Value| {
        let params = json!({ "sessionId": "s", "update": update });
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })
    };
    for (message, answers) in [
        (update(json!({ "sessionUpdate": "no_such_kind" })), None),
        (update(json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text" } })), None),
        (update(json!({ "sessionUpdate": "tool_call", "toolCallId": "t" })), None),
        (json!({ "jsonrpc": "2.0", "method": "session/of_our_own", "params": {} }), None),
        (json!({ "jsonrpc": "2.0", "id": 1, "result": { "stopReason": "bored" } }), Some("session/prompt")),
        (json!({ "jsonrpc": "2.0", "id": 1, "result": { "sessionId": 7 } }), Some("session/new")),
        (json!({ "jsonrpc": "2.0", "id": 1, "error": { "message": "no code" } }), Some("session/new")),
        (json!({ "jsonrpc": "2.0", "id": 1, "result": {}, "error": {} }), Some("session/new")),
    ] {
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| published.check(&message, answers)));
        assert!(checked.is_err(), "taken for good: {message}");
    }
}

#[test]
fn refusals_are_told_as_published() {
    let published = Published::load();
    let gateway = Home::for_serving().serve();
    let mut client = Watched::known(&gateway, "/acp", &published);
    let unknown = "00000000-0000-7000-8000-000000000000";
    for (method, params, code) in [
        ("session/load", json!({ "sessionId": unknown, "cwd": "/", "mcpServers": [] }), -32002),
        ("session/prompt", json!({ "sessionId": unknown, "prompt": [] }), -32002),
        ("session/prompt", json!({ "sessionId": 7 }), -32602),
        ("session/list", json!({ "cursor": "x" }), -32602),
        ("no/such/method", json!({}), -32601),
        ("_gembridge/no_such_method", json!({}), -32601),
    ] {
        assert_eq!(client.call(method, &params).unwrap_err()["code"], code, "{method} {params}");
    }
    client.client.send(&json!([{ "jsonrpc": "2.0", "id": 1, "method": "session/list" }]));
    assert_eq!(client.take("", 0).unwrap().unwrap_err()["code"], -32600);
}

/// Client tools of another API, the prompts of another client, and turns that another began.
#[test]
fn what_others_do_is_told_as_published() {
    let published = Published::load();
    let gateway = Home::for_serving().serve();
    let mut watcher = Watched::known(&gateway, "/acp", &published);
    watcher.call("_gembridge/watch_sessions", &json!({})).unwrap();
    let weather =
        json!({ "type": "function", "function": { "name": "get_weather", "parameters": { "type": "object" } } });
    let body = json!({
        "model": "demo",
        "messages": [{ "role": "user", "content": "call get_weather {\"city\":\"Oslo\"}" }],
        "tools": [weather],
    });
    let mut connection = gateway.connect();
    crate::support::gateway::post(&mut connection, &gateway.key, &body, &[]);
    assert_eq!(connection.answer().unwrap().json()["choices"][0]["finish_reason"], "tool_calls");
    let sessions = watcher.call("_gembridge/sessions", &json!({})).unwrap();
    let session = sessions["sessions"][0]["sessionId"].as_str().unwrap().to_owned();
    let loading = json!({ "sessionId": session, "cwd": "/", "mcpServers": [] });
    watcher.call("session/load", &loading).unwrap();
    watcher.has_met(&["user_message_chunk", "tool_call", "_gembridge/session_changed"]);
    let mut other = Watched::known(&gateway, "/acp", &published);
    other.call("session/load", &loading).unwrap();
    watcher.client.notify("session/cancel", &json!({ "sessionId": session }));
    other.prompt(&session, "from another").unwrap();
    watcher.call("session/list", &json!({})).unwrap();
}
