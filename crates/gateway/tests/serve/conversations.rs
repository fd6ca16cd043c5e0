//! Conversations that outgrow their agent.

use std::path::Path;

use serde_json::json;

use crate::gateway::{Gateway, Home, read_lines, said};
use crate::http::Answer;

/// The text of the newest prompt that the agent got.
fn newest_prompt(record: &Path) -> String {
    let lines = read_lines(record);
    let mut prompts = lines.iter().rev().filter(|line| line["recv"]["method"] == "session/prompt");
    let blocks = &prompts.next().expect("a prompt")["recv"]["params"]["prompt"];
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
    let home = Home::new();
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
