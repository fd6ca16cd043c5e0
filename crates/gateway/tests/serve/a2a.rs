//! Other agents at the gateway: what the card promises is enforced, the port of its own answers at `/`, and tasks outlive
//! the process.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::http::Answer;

fn call_at(gateway: &Gateway, path: &str, key: Option<&str>, method: &str, params: &Value) -> Answer {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let bearer = key.map(|key| format!("Bearer {key}"));
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    gateway.ask("POST", path, &headers, Some(&body))
}

fn call(gateway: &Gateway, method: &str, params: &Value) -> Value {
    call_at(gateway, "/a2a", Some(&gateway.key), method, params).json()
}

fn said(text: &str) -> Value {
    json!({ "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": text }] })
}

#[test]
fn s8_every_method_wants_what_the_card_says() {
    let gateway = Home::for_serving().serve();
    let card = gateway.ask("GET", "/.well-known/agent-card.json", &[], None).json();
    assert_eq!(card["securitySchemes"]["bearer"]["scheme"], "bearer");
    let methods = ["message/send", "message/stream", "tasks/get", "tasks/list", "tasks/cancel", "tasks/resubscribe"];
    let new = ["SendMessage", "GetTask", "GetExtendedAgentCard"];
    for method in methods.iter().chain(&new).chain(&["inject_result", "agent/getAuthenticatedExtendedCard", "no/such"])
    {
        for key in [None, Some("gb-wrong")] {
            let answer = call_at(&gateway, "/a2a", key, method, &json!({}));
            assert_eq!(answer.status, 401, "{method}");
            assert_eq!(answer.json()["error"]["data"][0]["reason"], "INVALID_API_KEY");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
    }
    for path in ["/a2a/v1/tasks", "/a2a/v1/tasks/x", "/a2a/v1/extendedAgentCard"] {
        assert_eq!(gateway.ask("GET", path, &[], None).status, 401, "{path}");
        assert_ne!(gateway.get(path).status, 401, "{path}");
    }
    let key = [("x-api-key", gateway.key.as_str()), ("content-type", "application/json")];
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/list", "params": {} }).to_string();
    assert_eq!(gateway.ask("POST", "/a2a/", &key, Some(&body)).json()["result"]["tasks"], json!([]));
}

#[test]
fn on_its_own_port_json_rpc_is_at_the_root() {
    let home = Home::for_serving();
    // Two runs would need two free ports: the system is asked for one that is free now.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut gateway = home.serve_with(&["--agent", "demo"], &[("A2A_PORT", &free.port().to_string())]);
    gateway.address = free;
    for path in ["/", "/a2a"] {
        let answer = call_at(&gateway, path, Some(&gateway.key), "message/send", &json!({ "message": said("hello") }));
        let task = &answer.json()["result"];
        assert_eq!(task["status"]["state"], "input-required", "{task}");
    }
    let card =
        gateway.ask("GET", "/.well-known/agent-card.json", &[("host", &format!("localhost:{}", free.port()))], None);
    assert_eq!(card.json()["url"], format!("http://localhost:{}/a2a", free.port()));
    assert_eq!(call_at(&gateway, "/", None, "tasks/list", &json!({})).status, 401);
}

#[test]
fn the_binding_over_plain_http_reaches_the_same_tasks() {
    let gateway = Home::for_serving().serve();
    let bearer = format!("Bearer {}", gateway.key);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/a2a+json")];
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] });
    let body = json!({ "message": message }).to_string();
    let sent = gateway.ask("POST", "/a2a/v1/message:send", &headers, Some(&body)).json();
    let id = sent["task"]["id"].as_str().expect("a task").to_owned();
    assert_eq!(gateway.get(&format!("/a2a/v1/tasks/{id}")).json()["id"], id.as_str());
    assert_eq!(gateway.get("/a2a/v1/tasks?pageSize=5").json()["tasks"][0]["id"], id.as_str());
    let cancelled = gateway.ask("POST", &format!("/a2a/v1/tasks/{id}:cancel"), &headers, Some("{}")).json();
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    let again = gateway.ask("POST", &format!("/a2a/v1/tasks/{id}:cancel"), &headers, Some("{}"));
    assert_eq!((again.status, &again.json()["error"]["details"][0]["reason"]), (409, &json!("TASK_NOT_CANCELABLE")));
    assert_eq!(gateway.get("/a2a/v1/tasks/none").status, 404);
}

#[test]
fn after_kill_9_finished_tasks_are_readable_and_running_ones_failed_with_a_reason() {
    let home = Home::for_serving();
    let mut gateway = home.with_fake(&[], "").serve_fake();
    let finished = call(&gateway, "message/send", &json!({ "message": said("say done") }))["result"].clone();
    let params = json!({ "message": said("say half ;; wait-cancel"), "configuration": { "blocking": false } });
    let running = call(&gateway, "message/send", &params)["result"]["id"].clone();
    let read = |gateway: &Gateway, id: &Value| call(gateway, "tasks/get", &json!({ "id": id }))["result"].clone();
    gateway.wait_for("half an answer", |gateway| read(gateway, &running).to_string().contains("half").then_some(()));
    gateway.signal(Signal::KILL);
    gateway.ended();

    let gateway = gateway.into_home().serve_fake();
    assert_eq!(read(&gateway, &finished["id"]), finished);
    let task = read(&gateway, &running);
    assert_eq!(task["status"]["state"], "failed", "{task}");
    assert!(task["status"]["message"]["parts"][0]["text"].as_str().is_some_and(|why| !why.is_empty()), "{task}");
    let listed = call(&gateway, "tasks/list", &json!({}))["result"]["tasks"].clone();
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed}");
}
