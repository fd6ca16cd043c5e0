//! A gateway that goes in the middle of a session, and comes back on the same port with the same state.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::SocketAddr;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::editor::{Editor, answer};
use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::messages::{outcome, said, steps};

/// On an address of its own: while it is away nobody else gets its port, neither to listen on nor to call from.
fn serve() -> Gateway {
    let [first, second, third, ..] = RandomState::new().build_hasher().finish().to_ne_bytes();
    serve_on(Home::for_serving(), SocketAddr::from(([127, first, second.max(1), third.clamp(1, 254)], 0)))
}

fn serve_on(home: Home, address: SocketAddr) -> Gateway {
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    home.serve_with(&["--agent", "demo", "--host", &host, "--allow-host", &host, "--port", &port], &[])
}

/// Ends it without a goodbye, and starts another in its place.
fn killed_and_restarted(mut gateway: Gateway, meanwhile: impl FnOnce()) -> Gateway {
    let address = gateway.address;
    gateway.signal(Signal::KILL);
    gateway.ended();
    let home = gateway.into_home();
    meanwhile();
    serve_on(home, address)
}

#[test]
fn a_gateway_that_was_killed_is_taken_up_again_with_nothing_lost_and_nothing_twice() {
    let gateway = serve();
    let mut editor = Editor::known(&gateway, "");
    let session = editor.new_session();
    let mut heard = editor.turn(&session, "the first");
    let id = editor.prompt(&session, "slow 100000 5");
    heard.extend(editor.until(|message| said(std::slice::from_ref(message)).contains("word-20")));
    let gateway = killed_and_restarted(gateway, || {
        let messages = editor.until_answered(id);
        let error = outcome(&messages).unwrap_err();
        assert_eq!(error["data"]["code"], "connection_lost", "whoever waits is told: {error}");
        heard.extend(messages);
    });
    // What was logged before the kill and not heard, and the end of the turn that the kill cut off.
    heard.extend(editor.until(|message| message["method"] == "_gembridge/replay_ended"));
    heard.extend(editor.turn(&session, "and now?"));
    assert_eq!(outcome(&heard).unwrap()["stopReason"], "end_turn");

    let mut other = Editor::known(&gateway, &format!("?session={session}"));
    let all = other.until(|message| message["method"] == "_gembridge/replay_ended");
    assert_eq!(said(&heard), said(&all), "every word once, in order");
    let told = steps(&heard);
    assert!(told.is_sorted_by(|one, next| one < next), "no step is told twice: {told:?}");
    let ends = |messages: &[Value]| {
        let ends = messages.iter().filter(|message| message["method"] == "_gembridge/turn_ended");
        ends.map(|end| end["params"]["outcome"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ends(&heard), [json!("finished"), json!("interrupted"), json!("finished")]);
    assert_eq!(ends(&heard), ends(&all));
}

#[test]
fn what_is_said_while_the_gateway_is_away_reaches_it_when_it_is_back() {
    let gateway = serve();
    let mut editor = Editor::known(&gateway, "");
    let session = editor.new_session();
    editor.turn(&session, "the first");
    let mut waiting = 0;
    let _gateway = killed_and_restarted(gateway, || waiting = editor.prompt(&session, "from away"));
    let messages = editor.until(|message| message["id"] == waiting);
    match outcome(&messages) {
        Ok(result) => assert!(result["stopReason"] == "end_turn" && said(&messages).contains("from away")),
        // Or it had not noticed yet that nobody hears it, and then says so.
        Err(error) => assert_eq!(error["data"]["code"], "connection_lost"),
    }
    assert!(said(&editor.turn(&session, "here again")).contains("here again"));
}

#[test]
fn a_question_that_was_open_at_the_kill_is_withdrawn_and_a_late_answer_settles_no_other() {
    let gateway = serve();
    let mut editor = Editor::known(&gateway, "");
    let session = editor.new_session();
    editor.prompt(&session, "permission make old");
    let is_question = |message: &Value| message["method"] == "session/request_permission";
    let old = editor.until(is_question).pop().unwrap();
    let _gateway = killed_and_restarted(gateway, || {
        let withdrawn = editor.until(|message| message["method"] == "$/cancel_request").pop().unwrap();
        assert_eq!(withdrawn["params"]["requestId"], old["id"]);
    });
    editor.until(|message| message["method"] == "_gembridge/replay_ended");
    let id = editor.prompt(&session, "permission make new");
    let new = editor.until(is_question).pop().unwrap();
    assert_ne!(new["id"], old["id"]);
    editor.send(&answer(&old, "allow_once"));
    editor.send(&answer(&new, "reject_once"));
    let messages = editor.until_answered(id);
    let settled = messages.iter().find(|message| message["method"] == "_gembridge/request_resolved").unwrap();
    assert_eq!(settled["params"]["by"], "you");
    assert!(messages.iter().any(|message| message["params"]["update"]["status"] == "failed"), "{messages:#?}");
}

#[test]
fn a_question_that_outlives_the_connection_is_asked_again_and_its_answer_counts() {
    let gateway = Home::for_serving().serve();
    let mut editor = Editor::known(&gateway, "");
    let session = editor.new_session();
    editor.prompt(&session, "permission make it");
    let is_question = |message: &Value| message["method"] == "session/request_permission";
    let first = editor.until(is_question).pop().unwrap();
    // The gateway lets go of whoever sends more than it takes, and the turn goes on.
    editor.request("session/list", &json!({ "cursor": "x".repeat(11 << 20) }));
    let again = editor.until(is_question).pop().unwrap();
    assert_ne!(again["id"], first["id"]);
    assert_eq!(again["params"]["_meta"]["gembridge"]["ask"], first["params"]["_meta"]["gembridge"]["ask"]);
    editor.send(&answer(&again, "allow_once"));
    let messages = editor.until(|message| message["method"] == "_gembridge/turn_ended");
    assert_eq!(messages.last().unwrap()["params"]["outcome"], "finished");
    assert!(said(&messages).contains("Allowed"), "{}", said(&messages));
}

#[test]
fn an_editor_that_leaves_while_the_gateway_is_away_is_let_go() {
    let mut gateway = Home::for_serving().serve();
    let mut editor = Editor::known(&gateway, "");
    gateway.signal(Signal::KILL);
    gateway.ended();
    editor.hang_up();
    assert_eq!(editor.code(), (0, String::new()));
}

#[test]
fn a_key_that_is_revoked_ends_it_with_a_sentence() {
    let gateway = Home::for_serving().serve();
    let key = gateway.home.key("ann");
    std::fs::write(gateway.home.path("a-key"), key).unwrap();
    let url = format!("ws://{}/acp", gateway.address);
    let mut editor = Editor::start(gateway.home.command(&["connect", &url, "--key-file", "a-key"]));
    editor.call("initialize", &json!({ "protocolVersion": 1 })).unwrap();
    gateway.home.stdout_of(&["keys", "revoke", "ann"]);
    let (code, said) = editor.code();
    assert_eq!(code, 1);
    assert!(said.contains("401"), "{said}");
}
