//! Clients that leave before the end: the agent is told each time.

use gembridge_testkit::Record;

use crate::support::home::Home;
use crate::support::script::Script;

#[track_caller]
fn every_turn_is_cancelled(script: Script) {
    let home = Home::for_serving();
    let record = Record::at(home.path("record"));
    let gateway = home.with_fake(&["--record", record.path().to_str().unwrap()], "").serve_fake();
    script.succeeds(&gateway, "fake");
    record.wait("a cancel for each prompt", |record| {
        let (prompts, cancels) = (record.messages_of("session/prompt"), record.messages_of("session/cancel"));
        (prompts.len() == 3 && cancels.len() == 3).then_some(())
    });
}

#[test]
fn openai_python_leaves_and_the_agent_stops() {
    every_turn_is_cancelled(Script::python("openai_leaving.py"));
}

#[test]
fn openai_node_leaves_and_the_agent_stops() {
    every_turn_is_cancelled(Script::node("openai-leaving.mjs"));
}
