//! Agents that fail and gateways that go, as a WebSocket client sees them.

use rustix::process::Signal;
use serde_json::json;

use crate::support::home::Home;
use crate::support::messages::said;
use crate::support::websocket::{Client, hello};

#[test]
fn r1_an_agent_that_dies_in_a_turn_ends_it_once_and_the_next_turn_runs() {
    let gateway = Home::for_serving().serve();
    let mut client = Client::known(&gateway, "/acp");
    let session = client.new_session();
    let (messages, end) = client.turn(&session, "crash 3");
    let error = end.unwrap_err();
    assert_eq!(error["data"]["code"], "agent_error", "{error}");
    let ends = messages.iter().filter(|message| message["method"] == "_gembridge/turn_ended");
    let ends: Vec<_> = ends.map(|message| message["params"]["outcome"].clone()).collect();
    assert_eq!(ends, [json!("interrupted")]);
    let (messages, end) = client.turn(&session, "hello");
    assert!(end.is_ok() && said(&messages).contains("hello"));
    assert!(messages.iter().any(|message| message["method"] == "_gembridge/agent_replaced"));
}

#[test]
fn r13_sigterm_lets_the_running_turn_end_and_closes_sockets_with_1001() {
    let mut gateway = Home::for_serving().serve();
    let mut idle = Client::known(&gateway, "/acp");
    let mut busy = Client::known(&gateway, "/acp");
    let session = busy.new_session();
    let id = busy.prompt(&session, "slow 10 50");
    busy.named("_gembridge/turn_started");
    gateway.signal(Signal::TERM);
    assert_eq!(idle.closed(), 1001);
    let messages = busy.until(|message| message["id"] == id);
    assert_eq!(messages.last().unwrap()["result"]["stopReason"], "end_turn");
    assert_eq!(busy.closed(), 1001);
    assert!(gateway.ended().success());
}

#[test]
fn s6_a_key_that_is_revoked_closes_its_socket() {
    let gateway = Home::for_serving().serve();
    let key = gateway.home.key("ann");
    let mut client = Client::connect_to(gateway.address, &key, "/acp").unwrap();
    client.call("initialize", &hello()).unwrap();
    gateway.home.stdout_of(&["keys", "revoke", "ann"]);
    assert_eq!(client.closed(), 1008);
}

#[test]
fn questions_of_the_fake_agent_reach_the_client_and_their_answers_the_agent() {
    let home = Home::for_serving();
    let workspace = home.path("workspace");
    std::fs::create_dir(&workspace).unwrap();
    home.stdout_of(&["trust", "add", workspace.to_str().unwrap()]);
    let program = gembridge_testkit::fake_agent_path();
    home.configure_serving(&format!(
        "[agents.fake]\ncommand = {program:?}\nargs = [\"--mode\", \"permission-storm:3\"]\nmode = \"agent\"\nworkspace = {workspace:?}\n",
    ));
    let gateway = home.serve_fake();
    let mut client = Client::known(&gateway, "/acp");
    let new = client.call("session/new", &json!({ "cwd": workspace, "mcpServers": [] })).unwrap();
    let session = new["sessionId"].as_str().unwrap().to_owned();
    let id = client.prompt(&session, "storm");
    let mut asked = 0;
    loop {
        let message = client.next().unwrap();
        if message["method"] == "session/request_permission" {
            asked += 1;
            let option = message["params"]["options"][0]["optionId"].clone();
            let result = json!({ "outcome": { "outcome": "selected", "optionId": option } });
            client.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
        }
        if message["id"] == id && message.get("method").is_none() {
            assert_eq!(message["result"]["stopReason"], "end_turn", "{message}");
            break;
        }
    }
    assert_eq!(asked, 3);
}

#[test]
fn s16_neither_keys_nor_tickets_nor_words_stand_in_the_log() {
    let gateway = Home::for_serving().serve_with(&["--agent", "demo", "--log-level", "debug"], &[]);
    let bearer = format!("Bearer {}", gateway.key);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let ticket = gateway.ask("POST", "/acp/ticket", &headers, Some("{}")).json()["ticket"].as_str().unwrap().to_owned();
    let mut client = Client::connect_to(gateway.address, "", &format!("/acp?ticket={ticket}")).unwrap();
    client.call("initialize", &hello()).unwrap();
    let session = client.new_session();
    client.turn(&session, "canary-words").1.unwrap();
    client.call("_gembridge/rename", &json!({ "sessionId": session, "title": "canary-title" })).unwrap();
    assert_eq!(Client::connect_to(gateway.address, &gateway.key, "/acp?key=canary-key").map(|_| ()), Err(400));
    drop(client);
    let mut gateway = gateway;
    gateway.signal(Signal::TERM);
    gateway.ended();
    let audit = std::fs::read_to_string(gateway.home.state("audit.jsonl")).unwrap();
    assert!(audit.contains("session/prompt") && audit.contains(&session), "s33: it says who did what");
    let log = gateway.stderr() + &audit;
    for secret in [gateway.key.as_str(), &ticket, "canary-words", "canary-title", "canary-key"] {
        assert!(!log.contains(secret), "`{secret}` is in the log");
    }
}
