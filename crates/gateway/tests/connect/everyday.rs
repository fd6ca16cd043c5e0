//! What works as long as the gateway is there, and what is said when it is not.

use std::net::SocketAddr;

use rustix::process::Signal;
use serde_json::json;

use crate::editor::{Editor, answer};
use crate::support::home::Home;
use crate::support::messages::{outcome, said};

#[test]
fn a_prompt_goes_through_and_the_end_of_the_input_ends_it() {
    let gateway = Home::for_serving().serve();
    let mut editor = Editor::known(&gateway, "");
    let session = editor.new_session();
    let messages = editor.turn(&session, "hello there");
    assert!(said(&messages).contains("hello there"));
    assert_eq!(outcome(&messages).unwrap()["stopReason"], "end_turn");
    editor.hang_up();
    assert_eq!(editor.code(), (0, String::new()));
}

#[test]
fn the_gateway_is_found_wherever_it_listens() {
    for host in ["127.0.0.1", "0.0.0.0", "::1"] {
        let gateway = Home::for_serving().serve_with(&["--agent", "demo", "--host", host], &[]);
        let mut editor = Editor::of_own(&gateway.home);
        editor.call("initialize", &json!({ "protocolVersion": 1 })).unwrap();
        let session = editor.new_session();
        assert!(said(&editor.turn(&session, "hello there")).contains("hello there"), "{host}");
    }
}

#[test]
fn without_a_gateway_the_way_to_one_is_said() {
    let home = Home::for_serving();
    let mut editor = Editor::of_own(&home);
    let (code, said) = editor.code();
    assert_eq!(code, 2);
    assert!(said.contains("no gateway has run here yet; start `gembridge serve`"), "{said}");
    let mut gateway = home.serve();
    gateway.signal(Signal::TERM);
    gateway.ended();
    let home = gateway.into_home();
    let (code, said) = Editor::of_own(&home).code();
    assert_eq!(code, 1);
    assert!(said.contains("start `gembridge serve`"), "{said}");
}

#[test]
fn a_permission_is_asked_of_the_editor_and_its_answer_counts() {
    let gateway = Home::for_serving().serve();
    let mut editor = Editor::known(&gateway, "");
    let session = editor.new_session();
    for (kind, status) in [("allow_once", "completed"), ("reject_once", "failed")] {
        let id = editor.prompt(&session, "permission rm -r build");
        let question = editor.until(|message| message["method"] == "session/request_permission").pop().unwrap();
        editor.send(&answer(&question, kind));
        let messages = editor.until_answered(id);
        let ended = messages.iter().any(|message| message["params"]["update"]["status"] == status);
        assert!(ended, "{kind}: {messages:#?}");
    }
}

#[test]
fn a_line_of_ten_megabytes_goes_through_and_comes_back() {
    let gateway = Home::for_serving().serve();
    let mut editor = Editor::known(&gateway, "");
    let session = editor.new_session();
    // With the rest of the line a little less than ten million bytes, which is what agents take.
    let data = "A".repeat(9_998_000);
    let image = json!({ "type": "image", "mimeType": "image/png", "data": data });
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "look" }, image] });
    let id = editor.request("session/prompt", &prompt);
    let messages = editor.until_answered(id);
    assert!(said(&messages).contains(&format!("{} characters", data.len())), "{}", said(&messages));
    let id = editor.request("session/load", &json!({ "sessionId": session, "cwd": "/", "mcpServers": [] }));
    let messages = editor.until_answered(id);
    let contents = messages.iter().map(|message| &message["params"]["update"]["content"]["data"]);
    assert!(contents.into_iter().any(|found| *found == data), "the image is told again");
}

#[test]
fn a_message_that_the_gateway_does_not_take_fails_alone() {
    let gateway = Home::for_serving().serve();
    let mut editor = Editor::known(&gateway, "");
    let session = editor.new_session();
    let error = outcome(&editor.turn(&session, &"x".repeat(11 << 20))).unwrap_err();
    assert_eq!(error["data"]["code"], "connection_lost");
    assert!(error["message"].as_str().unwrap().contains("too large"), "{error}");
    assert_eq!(outcome(&editor.turn(&session, "hello")).unwrap()["stopReason"], "end_turn");
}

#[test]
fn a_session_of_the_address_is_shown_from_where_the_address_says() {
    let gateway = Home::for_serving().serve();
    let mut one = Editor::known(&gateway, "");
    let session = one.new_session();
    one.turn(&session, "the first");
    one.turn(&session, "the second");
    let mut two = Editor::known(&gateway, &format!("?session={session}&limit=1"));
    let shown = two.until(|message| message["method"] == "_gembridge/replay_ended");
    assert!(said(&shown).contains("the second") && !said(&shown).contains("the first"));
    assert!(outcome(&two.turn(&session, "the third")).is_ok());
}

#[test]
fn ctrl_c_ends_it() {
    let gateway = Home::for_serving().serve();
    let mut editor = Editor::known(&gateway, "");
    let session = editor.new_session();
    editor.prompt(&session, "wait");
    editor.until(|message| message["method"] == "_gembridge/turn_started");
    editor.signal(Signal::INT);
    assert_eq!(editor.code(), (130, String::new()));
}

#[test]
fn without_a_gateway_a_sentence_says_what_to_do() {
    let home = Home::for_serving();
    std::fs::write(home.path("a-key"), "some-key").unwrap();
    // Taken, so that no other program gets it, and nobody listens.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let url = format!("ws://{}", taken.local_addr().unwrap());
    let mut editor = Editor::start(home.command(&["connect", &url, "--key-file", "a-key"]));
    let (code, said) = editor.code();
    assert_eq!((code, said.lines().count()), (1, 1), "{said}");
    assert!(said.contains("no gateway at") && said.contains("`gembridge serve`"), "{said}");
}

#[test]
fn with_a_key_that_is_not_known_a_sentence_says_so_and_never_which() {
    let gateway = Home::for_serving().serve();
    std::fs::write(gateway.home.path("a-key"), "canary-of-a-key").unwrap();
    let url = format!("ws://{}", gateway.address);
    let mut editor = Editor::start(gateway.home.command(&["connect", &url, "--key-file", "a-key"]));
    let (code, said) = editor.code();
    assert_eq!((code, said.lines().count()), (1, 1), "{said}");
    assert!(said.contains("401") && said.contains("`GEMBRIDGE_KEY`") && !said.contains("canary"), "{said}");
}
