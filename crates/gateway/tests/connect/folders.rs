//! The folder of an editor: with the operator's own key the agent works in it once it is trusted.

use std::fs;

use serde_json::{Value, json};

use crate::editor::Editor;
use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::messages::{outcome, said};

fn served() -> Gateway {
    let gateway = Home::for_serving().serve();
    fs::create_dir(gateway.home.path("project")).unwrap();
    gateway
}

/// A session in the project's folder: the answer to its beginning.
fn opened(editor: &mut Editor, gateway: &Gateway) -> Value {
    editor.call("initialize", &json!({ "protocolVersion": 1 })).unwrap();
    let folder = gateway.home.path("project");
    editor.call("session/new", &json!({ "cwd": folder, "mcpServers": [] })).unwrap()
}

/// A turn of that session, with everything that was said since it was opened.
fn turn(editor: &mut Editor, opened: &Value, prompt: &str) -> Vec<Value> {
    let messages = editor.turn(opened["sessionId"].as_str().unwrap(), prompt);
    assert_eq!(outcome(&messages).unwrap()["stopReason"], "end_turn");
    messages
}

#[test]
fn a_folder_that_is_not_trusted_is_not_seen_and_the_session_says_so() {
    let gateway = served();
    let mut editor = Editor::of_own(&gateway.home);
    let opened = opened(&mut editor, &gateway);
    assert_eq!(opened["_meta"]["gembridge"]["mode"], "chat");
    let words = said(&turn(&mut editor, &opened, "hello there"));
    assert!(words.contains("does not see") && words.contains("gembridge trust add"), "{words}");
}

#[test]
fn an_agent_works_in_a_trusted_folder_of_its_operators_editor() {
    let gateway = served();
    let folder = gateway.home.path("project");
    gateway.home.run(&["trust", "add", folder.to_str().unwrap()]).succeeds();
    let mut editor = Editor::of_own(&gateway.home);
    let opened = opened(&mut editor, &gateway);
    let meta = &opened["_meta"]["gembridge"];
    assert_eq!((&meta["mode"], &meta["ignored"]), (&json!("agent"), &json!([])));
    let folder = folder.canonicalize().unwrap();
    assert_eq!(meta["workspace"], folder.to_str().unwrap());
    let words = said(&turn(&mut editor, &opened, "hello there"));
    assert!(!words.contains("does not see"), "{words}");
    // What was begun in chat beside it stays there.
    assert!(gateway.complete("hello there").body.contains("hello there"));
}

#[test]
fn a_flag_trusts_the_folder_that_the_editor_opens() {
    let gateway = served();
    let mut editor = Editor::start(gateway.home.command(&["connect", "--trust"]));
    let opened = opened(&mut editor, &gateway);
    assert_eq!(opened["_meta"]["gembridge"]["mode"], "agent");
    turn(&mut editor, &opened, "hello there");
    let folder = gateway.home.path("project").canonicalize().unwrap();
    assert!(gateway.home.stdout_of(&["trust", "list"]).contains(folder.to_str().unwrap()), "it is on the list");
}

#[test]
fn the_wish_of_a_guest_to_work_in_a_folder_is_ignored() {
    let gateway = served();
    let folder = gateway.home.path("project");
    gateway.home.run(&["trust", "add", folder.to_str().unwrap()]).succeeds();
    let key = gateway.home.key("ann");
    let mut client = crate::support::websocket::Client::connect_to(gateway.address, &key, "/acp").unwrap();
    client.call("initialize", &json!({ "protocolVersion": 1 })).unwrap();
    let wish = json!({ "cwd": folder, "mcpServers": [], "_meta": { "gembridge": { "work_in_cwd": true } } });
    let opened = client.call("session/new", &wish).unwrap();
    let meta = &opened["_meta"]["gembridge"];
    assert_eq!((&meta["mode"], &meta["ignored"]), (&json!("chat"), &json!(["cwd"])));
}
