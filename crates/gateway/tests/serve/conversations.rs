//! Conversations that outgrow or outlive their agent.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::gateway::{Gateway, read_lines, said};
use crate::support::home::Home;
use crate::support::http::Answer;

/// The newest line of the record that is a prompt.
fn newest(record: &Path) -> Value {
    let mut newest_first = read_lines(record).into_iter().rev();
    newest_first.find(|line| line["recv"]["method"] == "session/prompt").expect("a prompt")
}

/// The text of the newest prompt that the agent got.
fn newest_prompt(record: &Path) -> String {
    let blocks = &newest(record)["recv"]["params"]["prompt"];
    blocks.as_array().unwrap().iter().filter_map(|block| block["text"].as_str()).collect()
}

fn go_on(gateway: &Gateway, first: &str, answer: &Answer) -> Answer {
    let history = json!([
        { "role": "user", "content": first },
        { "role": "assistant", "content": answer.text() },
        { "role": "user", "content": "say more" },
    ]);
    gateway.complete_as(&gateway.key, &history, &[])
}

#[test]
fn a_full_context_ends_by_length_and_the_next_request_begins_a_session_that_is_told_everything() {
    let home = Home::for_serving();
    let record = home.path("record");
    let gateway = home.with_fake(&["--record", record.to_str().unwrap()], "").serve_fake();
    for first in ["say half of it ;; stop max_tokens", "say half of it ;; error 400 the context window is full"] {
        let full = gateway.complete_as(&gateway.key, &said(first), &[]);
        assert_eq!(full.status, 200, "{}", full.body);
        assert_eq!(full.json()["choices"][0]["finish_reason"], "length", "{first}");
        assert_eq!(full.text(), "half of it");
        let next = go_on(&gateway, first, &full);
        assert_eq!(next.status, 200, "{}", next.body);
        assert_ne!(next.header("x-session-id"), full.header("x-session-id"), "{first}");
        let heard = newest_prompt(&record);
        assert_eq!(heard, format!("[User]\n{first}\n\n[Assistant]\nhalf of it\n\n[User]\nsay more"));
    }
    let whole = gateway.complete_as(&gateway.key, &said("say all of it"), &[]);
    assert_eq!(whole.json()["choices"][0]["finish_reason"], "stop");
    let next = go_on(&gateway, "say all of it", &whole);
    assert_eq!(next.header("x-session-id"), whole.header("x-session-id"), "one that is not full goes on");
    assert_eq!(newest_prompt(&record), "say more", "and hears what is new alone");
}

#[test]
fn a_named_session_outlives_its_agent_and_the_gateway() {
    let home = Home::for_serving();
    let record = home.path("record");
    let mut gateway = home.with_fake(&["--record", record.to_str().unwrap()], "").serve_fake();
    let first = gateway.complete("say one");
    let session = first.header("x-session-id").expect("a session").to_owned();
    let pin = [("x-session-id", session.as_str())];

    let agent = newest(&record)["pid"].as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)).expect("a pid");
    kill_process(agent, Signal::KILL).unwrap();
    let second = gateway.complete_as(&gateway.key, &said("say two"), &pin);
    assert_eq!((second.status, second.text().as_str()), (200, "two"), "{}", second.body);
    assert_eq!(second.header("x-session-id"), Some(session.as_str()));
    assert_eq!(newest_prompt(&record), "[User]\nsay one\n\n[Assistant]\none\n\n[User]\nsay two");

    gateway.signal(Signal::TERM);
    assert!(gateway.ended().success());
    let gateway = gateway.into_home().serve_fake();
    let third = gateway.complete_as(&gateway.key, &said("say three"), &pin);
    assert_eq!((third.status, third.text().as_str()), (200, "three"), "{}", third.body);
    let two = "[User]\nsay one\n\n[Assistant]\none\n\n[User]\nsay two\n\n[Assistant]\ntwo";
    assert_eq!(newest_prompt(&record), format!("{two}\n\n[User]\nsay three"));
}
