//! What the operator decides about the WebSocket API.

use std::fs;

use serde_json::{Value, json};

use crate::support::gateway::{Gateway, read_lines};
use crate::support::home::Home;
use crate::support::messages::said;
use crate::support::websocket::Client;

/// The address of the second port, as the log tells it.
fn second_port(gateway: &mut Gateway) -> std::net::SocketAddr {
    gateway.wait_for("the second port", |gateway| {
        let log = gateway.stderr();
        let address =
            log.lines().find_map(|line| line.split("ws://").nth(1)?.split_once('/').map(|(address, _)| address))?;
        address.parse().ok()
    })
}

#[test]
fn on_a_port_of_its_own_a_client_begins_as_it_likes() {
    let mut gateway = Home::for_serving().serve_with(&["--agent", "demo"], &[("GEMINI_PORT", "0")]);
    let port = second_port(&mut gateway);
    assert_eq!(Client::connect_to(port, "", "/").map(|_| ()), Err(401));
    let mut client = Client::connect_to(port, &gateway.key, "/").unwrap();
    let session = client.new_session();
    let (messages, end) = client.turn(&session, "hi");
    assert!(said(&messages).contains("hi") && end.is_ok());
    // By its name alone, from another connection.
    let mut other = Client::connect_to(port, &gateway.key, "/").unwrap();
    assert!(other.turn(&session, "again").1.is_ok());
    let mut strict = Client::connect_to(port, &gateway.key, "/acp").unwrap();
    strict.request("session/list", &json!({}));
    assert_eq!(strict.closed(), 1002);
}

#[test]
fn s13b_an_agent_with_a_workspace_takes_trusted_folders_and_no_others() {
    let home = Home::for_serving();
    for folder in ["workspace", "trusted", "other"] {
        fs::create_dir(home.path(folder)).unwrap();
    }
    home.stdout_of(&["trust", "add", home.path("trusted").to_str().unwrap()]);
    home.stdout_of(&["trust", "add", home.path("workspace").to_str().unwrap()]);
    let workspace = home.path("workspace");
    home.configure_serving(&format!("[agents.demo]\nmode = \"agent\"\nworkspace = {workspace:?}\n"));
    let gateway = home.serve();
    let mut client = Client::known(&gateway, "/acp");
    let mut new = |cwd: &std::path::Path| client.call("session/new", &json!({ "cwd": cwd, "mcpServers": [] }));
    let refused = new(&gateway.home.path("other")).unwrap_err();
    assert_eq!(refused["data"]["code"], "untrusted_cwd");
    let real = gateway.home.path("trusted").canonicalize().unwrap();
    assert_eq!(new(&gateway.home.path("trusted")).unwrap()["_meta"]["gembridge"]["workspace"], json!(real));
    assert!(new(&workspace).is_ok());
    let server = json!({ "type": "http", "name": "weather", "url": "http://127.0.0.1:1/", "headers": [] });
    let refused = client.call("session/new", &json!({ "cwd": workspace, "mcpServers": [server] })).unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("weather"));
}

#[test]
fn the_tap_writes_every_message_as_a_line() {
    let home = Home::for_serving();
    let file = home.path("tap.jsonl");
    let gateway = home.serve_with(&["--agent", "demo", "--tap", file.to_str().unwrap()], &[]);
    let mut client = Client::known(&gateway, "/acp");
    let session = client.new_session();
    client.turn(&session, "hi").1.unwrap();
    let mut gateway = gateway;
    let of = |lines: &[Value], kind: &str| lines.iter().filter(|line| line["type"] == kind).count();
    let lines = gateway.wait_for("the lines", |_| {
        let lines = read_lines(&file);
        (of(&lines, "agent:message") >= client.received).then_some(lines)
    });
    assert_eq!(of(&lines, "client:message"), 3);
    let prompt = lines.iter().find(|line| line["message"]["method"] == "session/prompt").unwrap();
    assert_eq!((&prompt["session"], prompt["at"].is_u64(), prompt["client"].is_u64()), (&json!(session), true, true));
}
