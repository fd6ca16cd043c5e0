//! Clients that leave while a call waits, and a gateway that is killed then.

use rustix::process::Signal;
use serde_json::json;

use crate::conversation::Conversation;
use crate::support::gateway::{Gateway, post};
use crate::support::home::Home;

/// The connections that the gateway holds, its agents' to it included.
fn connections(gateway: &Gateway) -> usize {
    let sockets = std::fs::read_dir(format!("/proc/{}/fd", gateway.pid())).unwrap();
    let is_socket = |path: std::path::PathBuf| path.to_string_lossy().starts_with("socket:");
    sockets.flatten().filter(|entry| std::fs::read_link(entry.path()).is_ok_and(is_socket)).count()
}

#[test]
fn a_gateway_drains_although_results_never_came() {
    let mut gateway = Home::for_serving().serve();
    // The first one starts the agent, which stays.
    let mut talk = Conversation::new(&gateway, &["pick"], r#"call pick {"n":0}"#);
    let call = talk.calls().remove(0);
    talk.give(&call, "nothing");
    talk.text();
    for number in 1..=5 {
        let mut gone = Conversation::new(&gateway, &["pick"], &format!(r#"call pick {{"n":{number}}}"#));
        assert_eq!(gone.calls().len(), 1);
    }
    gateway.signal(Signal::TERM);
    let status = gateway.ended();
    assert!(status.success(), "it drained although calls waited: {status}");
}

#[test]
fn a_client_that_leaves_before_its_call_is_told_cancels_the_turn() {
    let mut gateway = Home::for_serving().serve();
    let mut talk = Conversation::new(&gateway, &["pick"], r#"call pick {"n":0}"#);
    let call = talk.calls().remove(0);
    talk.give(&call, "nothing");
    talk.text();
    let before = connections(&gateway);
    for number in 0..5 {
        let mut connection = gateway.connect();
        // Words first, so that the call comes long after the client has left.
        let prompt = format!("slow 1000 20\ncall pick {{\"n\":{number}}}");
        let function = json!({"name": "pick", "parameters": {"type": "object"}});
        let tools = json!([{"type": "function", "function": function}]);
        let messages = json!([{"role": "user", "content": prompt}]);
        post(&mut connection, &gateway.key, &json!({"model": "default", "messages": messages, "tools": tools}), &[]);
    }
    gateway.wait_for("as many connections as before, each session's own stream aside", |gateway| {
        (connections(gateway) <= before + 5).then_some(())
    });
    let log = gateway.stderr();
    assert!(!log.contains(" error "), "{log}");
}

#[test]
fn a_gateway_killed_between_call_and_result_answers_after_its_restart() {
    let home = Home::for_serving();
    home.configure_serving("");
    let mut gateway = home.serve();
    let mut talk = Conversation::new(&gateway, &["pick"], r#"call pick {"n":1}"#);
    let call = talk.calls().remove(0);
    talk.give(&call, "the result that came too late");
    gateway.signal(Signal::KILL);
    let messages = talk.messages.clone();
    gateway.ended();
    let mut gateway = gateway.into_home().serve();
    let mut talk = Conversation::again(&gateway, messages);
    let text = talk.text();
    assert!(text.contains("the result that came too late"), "{text}");
    talk.say("count");
    assert_eq!(talk.text(), "This is turn 2 of the session.", "the conversation goes on where it was folded into");
    gateway.wait_for("the log's word about it", |gateway| gateway.stderr().contains("fold").then_some(()));
}

#[test]
fn a_turn_that_waits_dies_with_its_agent_and_is_folded_too() {
    let mut gateway = Home::for_serving().serve();
    let mut talk = Conversation::new(&gateway, &["pick"], r#"call pick {"n":1}"#);
    let call = talk.calls().remove(0);
    let messages = talk.messages.clone();
    let status = |gateway: &Gateway| gateway.get("/admin/status").json();
    gateway.wait_for("the turn that waits", |gateway| (status(gateway)["sessions"]["waiting"] == 1).then_some(()));
    // Not the spare: it steps in.
    let agent = status(&gateway)["agents"][0]["processes"][0]["pid"].as_i64().unwrap();
    let pid = rustix::process::Pid::from_raw(agent.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    // Its call is gone before it is, and the turn goes on between the two.
    gateway.wait_for("the end of the turn", |gateway| {
        let sessions = &status(gateway)["sessions"];
        (sessions["waiting"] == 0 && sessions["running"] == 0).then_some(())
    });
    let mut talk = Conversation::again(&gateway, messages);
    talk.give(&call, "told to the next agent");
    assert!(talk.text().contains("told to the next agent"));
}
