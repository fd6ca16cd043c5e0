//! What an admin key sees and changes, and what others do not.

use serde_json::json;

use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::http::Answer;
use crate::support::websocket::Client;

fn change(gateway: &Gateway, method: &str, path: &str, body: &str) -> Answer {
    let bearer = format!("Bearer {}", gateway.key);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    gateway.ask(method, path, &headers, Some(body))
}

#[test]
fn status_shows_agents_queues_sessions_and_clients() {
    let mut gateway = Home::for_serving().serve();
    let mut client = Client::known(&gateway, "/acp");
    let session = client.new_session();
    client.prompt(&session, "wait");
    client.named("_gembridge/turn_started");
    let status = gateway.wait_for("a status that has heard of it", |gateway| {
        let status = gateway.get("/admin/status").json();
        let is_running = status["sessions"]["running"] == 1 && status["queues"][0]["running"] == 1;
        (is_running && status["agents"][0]["processes"][0]["rssKb"].as_u64() > Some(0)).then_some(status)
    });
    assert_eq!((&status["connections"], &status["sessions"]["running"]), (&json!(1), &json!(1)));
    let agent = &status["agents"][0];
    assert_eq!(
        (&agent["name"], &agent["state"], &agent["circuit"]["open"]),
        (&json!("demo"), &json!("ready"), &json!(false))
    );
    let process = &agent["processes"][0];
    assert!(
        process["pid"].is_u64() && process["rssKb"].as_u64().unwrap() > 0 && process["uptimeMs"].is_u64(),
        "{agent}"
    );
    assert_eq!(status["queues"].as_array().unwrap()[0]["running"], 1);
    assert!(status["uptimeMs"].is_u64() && status["version"].is_string());
}

#[test]
fn s11_none_of_it_is_there_for_other_keys_and_reading_changes_nothing() {
    let gateway = Home::for_serving().serve();
    let key = gateway.home.key("ann");
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    for (method, path, body) in [
        ("GET", "/admin/status", None),
        ("GET", "/admin/origins", None),
        ("POST", "/admin/origins", Some(r#"{"origin":"https://a.example"}"#)),
        ("DELETE", "/admin/origins", Some(r#"{"origin":"https://a.example"}"#)),
        ("GET", "/admin/keys", None),
        ("POST", "/admin/keys", Some(r#"{"name":"eve","rank":"admin"}"#)),
        ("DELETE", "/admin/keys/ann", None),
    ] {
        assert_eq!(gateway.ask(method, path, &headers, body).status, 403, "{method} {path}");
        assert_eq!(gateway.ask(method, path, &headers[1..], body).status, 401, "{method} {path}");
    }
    let before =
        [gateway.home.config("keys.toml"), gateway.home.config("origins.toml")].map(|path| std::fs::read(path).ok());
    for path in ["/admin/status", "/admin/origins", "/admin/keys", "/admin/keys/ann"] {
        gateway.get(path);
    }
    let after =
        [gateway.home.config("keys.toml"), gateway.home.config("origins.toml")].map(|path| std::fs::read(path).ok());
    assert_eq!(before, after);
}

#[test]
fn a_refused_origin_is_shown_and_allowed_with_one_request() {
    let mut gateway = Home::for_serving().serve();
    let origin = "https://app.example";
    let bearer = format!("Bearer {}", gateway.key);
    let status = |gateway: &Gateway| {
        gateway.ask("GET", "/v1/models", &[("authorization", &bearer), ("origin", origin)], None).status
    };
    assert_eq!(status(&gateway), 403);
    let refused = gateway.get("/admin/origins").json()["refused"].clone();
    assert_eq!((&refused[0]["origin"], &refused[0]["count"]), (&json!(origin), &json!(1)));
    assert_eq!(change(&gateway, "POST", "/admin/origins", &json!({ "origin": origin }).to_string()).status, 200);
    gateway.wait_for("the origin to be allowed", |gateway| (status(gateway) == 200).then_some(()));
    assert_eq!(gateway.get("/admin/origins").json()["allowed"], json!([origin]));
    assert_eq!(change(&gateway, "DELETE", "/admin/origins", &json!({ "origin": origin }).to_string()).status, 200);
    gateway.wait_for("the origin to be refused", |gateway| (status(gateway) == 403).then_some(()));
    assert_eq!(change(&gateway, "POST", "/admin/origins", r#"{"origin":"*"}"#).status, 400);
    assert_eq!(change(&gateway, "POST", "/admin/origins", r#"{"origin":1}"#).status, 400);
}

#[test]
fn s16_a_key_is_told_once_and_never_listed() {
    let gateway = Home::for_serving().serve();
    let made = change(&gateway, "POST", "/admin/keys", r#"{"name":"ann"}"#);
    assert_eq!(made.status, 200);
    let key = made.json()["key"].as_str().unwrap().to_owned();
    assert_eq!(gateway.get_as(&key, "/v1/models").status, 200);
    let listed = gateway.get("/admin/keys");
    assert!(listed.body.contains("\"ann\"") && !listed.body.contains(&key), "{}", listed.body);
    assert_eq!(change(&gateway, "POST", "/admin/keys", r#"{"name":"ann"}"#).status, 400);
    let mut socket = Client::connect_to(gateway.address, &key, "/acp").unwrap();
    let bearer = format!("Bearer {}", gateway.key);
    let no_name = gateway.ask("DELETE", "/admin/keys/%ff", &[("authorization", &bearer)], None);
    assert_eq!((no_name.status, &no_name.json()["error"]["param"]), (400, &"name".into()));
    let revoked = gateway.ask("DELETE", "/admin/keys/ann", &[("authorization", &bearer)], None);
    assert_eq!(revoked.status, 204);
    assert_eq!(gateway.get_as(&key, "/v1/models").status, 401);
    assert_eq!(socket.closed(), 1008);
}
