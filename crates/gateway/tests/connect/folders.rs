//! The folder of an editor: with the operator's own key the agent works in it once it is trusted.

use std::fs;

use gembridge_testkit::Record;
use serde_json::{Value, json};

use crate::editor::{Editor, answer};
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

/// The gateway with the fake agent, which records in which folders its sessions are.
fn served_with_fake() -> Gateway {
    served_under("")
}

/// The same with settings in which `{project}` is the folder.
fn served_under(settings: &str) -> Gateway {
    let home = Home::new();
    fs::create_dir(home.path("project")).unwrap();
    let folder = home.path("project").canonicalize().unwrap();
    let settings = settings.replace("{project}", folder.to_str().unwrap());
    let record = record(&home);
    let home = home.with_fake(&["--record", record.path().to_str().unwrap()], &settings);
    home.serve_with(&["--agent", "fake"], &[])
}

/// What the agent received, also from guests.
fn record(home: &Home) -> Record {
    Record::at(home.path("records/all"))
}

/// The folders in which the agent was asked to begin sessions.
fn worked_in(gateway: &Gateway) -> Vec<String> {
    let begun = record(&gateway.home).messages_of("session/new");
    begun.iter().map(|begun| begun["params"]["cwd"].as_str().unwrap().to_owned()).collect()
}

fn project(gateway: &Gateway) -> String {
    gateway.home.path("project").canonicalize().unwrap().to_str().unwrap().to_owned()
}

/// The question that comes with a prompt, and the id of the prompt.
fn asked(editor: &mut Editor, session: &str, prompt: &str) -> (Value, u64) {
    let id = editor.prompt(session, prompt);
    let question = editor.until(|message| message["method"] == "session/request_permission").pop().unwrap();
    (question, id)
}

/// What the person says to the question.
fn decide(editor: &mut Editor, question: &Value, kind: &str) {
    editor.send(&answer(question, kind));
}

#[test]
fn the_first_prompt_in_an_unknown_folder_asks_and_the_folder_is_trusted_from_then_on() {
    let gateway = served_with_fake();
    let mut editor = Editor::of_own(&gateway.home);
    let opened = opened(&mut editor, &gateway);
    assert_eq!(opened["_meta"]["gembridge"]["mode"], "chat", "nothing is asked before the first prompt");
    let session = opened["sessionId"].as_str().unwrap();
    let (question, id) = asked(&mut editor, session, "say hello");
    let title = question["params"]["toolCall"]["title"].as_str().unwrap();
    assert!(title.contains("Let the agent work in") && title.contains("project"), "{question}");
    let kinds: Vec<&Value> =
        question["params"]["options"].as_array().unwrap().iter().map(|option| &option["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"], "what allows least comes first");
    assert!(record(&gateway.home).messages_of("session/prompt").is_empty(), "the prompt waits");
    decide(&mut editor, &question, "allow_always");
    let messages = editor.until_answered(id);
    assert_eq!(said(&messages), "hello");
    let shown = messages.iter().map(|message| &message["params"]["update"]);
    assert!(shown.clone().any(|update| update["status"] == "completed"), "{messages:#?}");
    assert_eq!(worked_in(&gateway).last(), Some(&project(&gateway)));
    assert!(gateway.home.stdout_of(&["trust", "list"]).contains(&project(&gateway)), "it is on the list");
    // The same session goes on there, and later ones are not asked about.
    assert_eq!(said(&turn(&mut editor, &opened, "say more")), "more");
    let next = self::opened(&mut Editor::of_own(&gateway.home), &gateway);
    assert_eq!(next["_meta"]["gembridge"]["mode"], "agent");
}

#[test]
fn a_folder_may_be_worked_in_this_time_only() {
    let gateway = served_with_fake();
    let mut editor = Editor::of_own(&gateway.home);
    for _ in 0..2 {
        let opened = opened(&mut editor, &gateway);
        let session = opened["sessionId"].as_str().unwrap();
        let (question, id) = asked(&mut editor, session, "say hello");
        decide(&mut editor, &question, "allow_once");
        assert_eq!(said(&editor.until_answered(id)), "hello");
        assert_eq!(worked_in(&gateway).last(), Some(&project(&gateway)));
        assert_eq!(said(&turn(&mut editor, &opened, "say more")), "more", "and for all of the session");
    }
    assert!(!gateway.home.stdout_of(&["trust", "list"]).contains("project"), "nothing is kept of it");
}

#[test]
fn whoever_wants_to_chat_without_the_folder_is_asked_once() {
    let gateway = served_with_fake();
    let mut editor = Editor::of_own(&gateway.home);
    let opened = opened(&mut editor, &gateway);
    let (question, id) = asked(&mut editor, opened["sessionId"].as_str().unwrap(), "say hello");
    decide(&mut editor, &question, "reject_once");
    assert_eq!(said(&editor.until_answered(id)), "hello");
    assert_eq!(said(&turn(&mut editor, &opened, "say more")), "more");
    assert!(!worked_in(&gateway).contains(&project(&gateway)), "{:?}", worked_in(&gateway));
    // The next session says what it lacks instead of asking.
    let next = self::opened(&mut editor, &gateway);
    let words = said(&turn(&mut editor, &next, "say again"));
    assert!(words.contains("does not see") && words.contains("gembridge trust add"), "{words}");
}

#[test]
fn a_client_that_cannot_ask_goes_on_without_the_folder_and_is_told() {
    let gateway = served_with_fake();
    for unable in [
        json!({ "error": { "code": -32601, "message": "unknown method" } }),
        json!({ "result": { "outcome": { "outcome": "cancelled" } } }),
        json!({ "result": { "outcome": { "outcome": "selected", "optionId": "made-up" } } }),
    ] {
        let mut editor = Editor::of_own(&gateway.home);
        let opened = opened(&mut editor, &gateway);
        let (question, id) = asked(&mut editor, opened["sessionId"].as_str().unwrap(), "say hello");
        let mut answer = unable.clone();
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = question["id"].clone();
        editor.send(&answer);
        let words = said(&editor.until_answered(id));
        assert!(words.contains("gembridge trust add") && words.ends_with("hello"), "{unable}: {words}");
    }
    assert!(!worked_in(&gateway).contains(&project(&gateway)));
}

#[test]
fn a_prompt_that_is_cancelled_while_it_waits_ends_and_the_next_one_asks_again() {
    let gateway = served_with_fake();
    let mut editor = Editor::of_own(&gateway.home);
    let opened = opened(&mut editor, &gateway);
    let session = opened["sessionId"].as_str().unwrap();
    let (first, id) = asked(&mut editor, session, "say never");
    editor.send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } }));
    assert_eq!(outcome(&editor.until_answered(id)).unwrap()["stopReason"], "cancelled");
    // As the protocol has it: the question of a cancelled turn is answered so. It decides nothing any more.
    let cancelled = json!({ "outcome": { "outcome": "cancelled" } });
    editor.send(&json!({ "jsonrpc": "2.0", "id": first["id"], "result": cancelled }));
    let (second, id) = asked(&mut editor, session, "say hello");
    assert_ne!(first["id"], second["id"]);
    decide(&mut editor, &second, "allow_once");
    assert_eq!(said(&editor.until_answered(id)), "hello");
    assert!(!record(&gateway.home).messages_of("session/prompt")[0].to_string().contains("never"));
}

#[test]
fn a_folder_has_the_permissions_that_the_settings_give_it() {
    let gateway = served_under("[permissions.workspaces]\n'{project}' = 'deny'\n");
    gateway.home.run(&["trust", "add", &project(&gateway)]).succeeds();
    let mut editor = Editor::of_own(&gateway.home);
    let opened = opened(&mut editor, &gateway);
    let words = said(&turn(&mut editor, &opened, "permission ls"));
    assert!(words.contains("permission: reject_once"), "nobody was asked: {words}");
}

#[test]
fn only_the_operator_moves_a_session_into_a_folder_and_only_before_its_first_turn() {
    let gateway = served_with_fake();
    let folder = project(&gateway);
    let mut client = crate::support::websocket::Client::connect_to(gateway.address, &gateway.key, "/acp").unwrap();
    client.call("initialize", &json!({ "protocolVersion": 1 })).unwrap();
    let prompt = |session: &Value| {
        let meta = json!({ "gembridge": { "work_in": folder } });
        json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "say hello" }], "_meta": meta })
    };
    let session = client.call("session/new", &json!({ "cwd": folder, "mcpServers": [] })).unwrap()["sessionId"].clone();
    let refused = client.call("session/prompt", &prompt(&session)).unwrap_err();
    assert_eq!(refused["data"]["code"], "untrusted_cwd", "the key alone trusts no folder: {refused}");
    gateway.home.run(&["trust", "add", &folder]).succeeds();
    assert_eq!(client.call("session/prompt", &prompt(&session)).unwrap()["stopReason"], "end_turn");
    assert_eq!(worked_in(&gateway).last(), Some(&folder));
    let session = client.call("session/new", &json!({ "cwd": "/", "mcpServers": [] })).unwrap()["sessionId"].clone();
    let plain = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "say hello" }] });
    client.call("session/prompt", &plain).unwrap();
    let late = client.call("session/prompt", &prompt(&session)).unwrap_err();
    assert!(late["message"].as_str().unwrap().contains("begin a new one"), "{late}");

    let key = gateway.home.key("ann");
    let mut guest = crate::support::websocket::Client::connect_to(gateway.address, &key, "/acp").unwrap();
    guest.call("initialize", &json!({ "protocolVersion": 1 })).unwrap();
    let session = guest.call("session/new", &json!({ "cwd": "/", "mcpServers": [] })).unwrap()["sessionId"].clone();
    let refused = guest.call("session/prompt", &prompt(&session)).unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("operator"), "{refused}");
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
fn a_program_without_a_project_works_where_the_gateway_has_its_agent_work() {
    let gateway = served_with_fake();
    let mut editor = Editor::start(gateway.home.command(&["connect", "--no-folder"]));
    let opened = opened(&mut editor, &gateway);
    assert_eq!(opened["_meta"]["gembridge"]["ignored"], json!([]), "nothing was named, so nothing is ignored");
    assert_eq!(said(&turn(&mut editor, &opened, "say hello")), "hello", "nothing is asked and nothing is told");
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
