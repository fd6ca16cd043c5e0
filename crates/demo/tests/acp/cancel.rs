//! Turns that end early end once, at once, and leave nothing open.

use serde_json::{Value, json};

use crate::agent::{Agent, chunk_text};

#[test]
fn cancel_in_the_middle_of_a_stream_ends_the_turn_once() {
    let mut agent = Agent::start();
    let session = agent.session();
    let id = agent.send_prompt(&session, "slow 100000 20");
    agent.next_where(|message| chunk_text(message).starts_with("word-2"));
    agent.notify("session/cancel", json!({"sessionId": session}));
    let turn = agent.finish(id, |_| json!({}));
    assert_eq!(turn.stop_reason(), "cancelled");
    assert!(turn.text().split(' ').count() < 50_000);
    // Nothing trails the answer: the next message belongs to the next turn.
    let next = agent.prompt(&session, "count");
    assert!(next.text().contains("turn 2 "), "{}", next.text());
}

#[test]
fn cancel_reaches_a_burst_that_fills_the_pipe() {
    let mut agent = Agent::start();
    let session = agent.session();
    let id = agent.send_prompt(&session, "chunks 1000000000");
    agent.next_where(|message| chunk_text(message) == "1000 ");
    agent.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(agent.finish(id, |_| json!({})).stop_reason(), "cancelled");
}

#[test]
fn a_withdrawn_request_is_answered_with_an_error() {
    let mut agent = Agent::start();
    let session = agent.session();
    let id = agent.send_prompt(&session, "wait");
    agent.notify("$/cancel_request", json!({"requestId": id}));
    assert_eq!(agent.finish(id, |_| json!({})).outcome.unwrap_err()["code"], -32800);
    assert_eq!(agent.prompt(&session, "hi").stop_reason(), "end_turn");
}

#[test]
fn cancel_while_permission_is_asked_withdraws_the_question_and_fails_the_call() {
    let mut agent = Agent::start();
    let session = agent.session();
    let id = agent.send_prompt(&session, "permission");
    let question = agent.next_where(|message| message["method"] == "session/request_permission");
    agent.notify("session/cancel", json!({"sessionId": session}));
    let withdrawn = agent.next();
    assert_eq!(withdrawn["method"], "$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    // The client's own `cancelled` comes late and changes nothing.
    agent.answer(&question, json!({"outcome": {"outcome": "cancelled"}}));
    let turn = agent.finish(id, |_| Value::Null);
    assert_eq!(turn.stop_reason(), "cancelled");
    assert_eq!(turn.statuses(), ["failed"]);
}

#[test]
fn closing_or_deleting_a_session_ends_its_turn() {
    for method in ["session/close", "session/delete"] {
        let mut agent = Agent::start();
        let session = agent.session();
        let prompt = agent.send_prompt(&session, "wait");
        let close = agent.send(method, json!({"sessionId": session}));
        let mut open = vec![prompt, close];
        while !open.is_empty() {
            let message = agent.next();
            if message["id"] == prompt {
                assert_eq!(message["result"]["stopReason"], "cancelled", "{method}");
            }
            open.retain(|id| message["id"] != *id);
        }
    }
}

#[test]
fn a_cancel_without_a_turn_does_not_touch_the_next_one() {
    let mut agent = Agent::start();
    let session = agent.session();
    agent.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(agent.prompt(&session, "hi").stop_reason(), "end_turn");
}
