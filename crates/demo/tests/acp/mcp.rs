//! Tools of MCP servers that the client names in `session/new`.

use serde_json::json;

use crate::agent::{Agent, Turn};
use crate::mcp_server::McpServer;

fn with_tools() -> (McpServer, Agent, String) {
    let server = McpServer::start();
    let mut agent = Agent::start();
    let session = agent.session_with(json!([server.entry()]));
    (server, agent, session)
}

fn check(prompt: &str, statuses: &[&str], text: &str) -> Turn {
    let (_server, mut agent, session) = with_tools();
    let turn = agent.prompt(&session, prompt);
    assert_eq!(turn.stop_reason(), "end_turn", "{prompt}");
    assert_eq!(turn.statuses(), statuses, "{prompt}");
    assert!(turn.text().contains(text), "{prompt} told {:?}", turn.text());
    turn
}

#[test]
fn servers_are_greeted_and_listed_when_the_session_opens() {
    let (server, _agent, _session) = with_tools();
    server.wait_for("initialize");
    server.wait_for("notifications/initialized");
    server.wait_for("tools/list");
}

#[test]
fn all_pages_of_tools_are_listed() {
    let turn = check("tools", &[], "`add` of `test`: does add");
    assert!(turn.text().contains("`pair` of `test`"));
}

#[test]
fn a_call_is_announced_and_its_result_told() {
    let turn = check("call add {\"a\": 2, \"b\": 40}", &["pending", "in_progress", "completed"], "answered: 42");
    let call = turn.of_kind("tool_call").next().unwrap();
    assert_eq!((&call["title"], &call["kind"]), (&json!("add"), &json!("other")));
    assert_eq!(call["rawInput"], json!({"a": 2, "b": 40}));
    let last = turn.of_kind("tool_call_update").last().unwrap();
    assert_eq!(last["content"], json!([{"type": "content", "content": {"type": "text", "text": "42"}}]));
}

#[test]
fn calls_end_as_their_results_say() {
    let failed = ["pending", "in_progress", "failed"];
    check("call boom", &failed, "failed: it exploded");
    check("call bad", &failed, "failed: bad tool");
    check("call progress", &["pending", "in_progress", "completed"], "after progress");
    check("call test/add {\"a\": 1, \"b\": 1}", &["pending", "in_progress", "completed"], "answered: 2");
    check("call missing", &[], "no tool `missing`; the session's MCP servers offer `add`");
    check("just words", &[], "just words");
}

#[test]
fn answer_with_calls_and_says_only_done() {
    let turn = check("answer-with add {\"a\": 1, \"b\": 2}", &["pending", "in_progress", "completed"], "done");
    assert_eq!(turn.text(), "done");
}

#[test]
fn parallel_calls_are_in_flight_together() {
    let (_server, mut agent, session) = with_tools();
    // The server answers `pair` only once two calls have come.
    let turn = agent.prompt(&session, "parallel\ncall pair {\"n\": 1}\ncall pair {\"n\": 2}");
    assert_eq!(turn.text(), "Tool `pair` answered: met 1\nTool `pair` answered: met 2\n");
    assert_eq!(turn.statuses().iter().filter(|status| **status == "completed").count(), 2);
}

#[test]
fn calls_joined_by_and_are_in_flight_together_too() {
    let (_server, mut agent, session) = with_tools();
    let turn = agent.prompt(&session, "call pair {\"n\": 1} and pair {\"n\": 2}");
    assert_eq!(turn.text(), "Tool `pair` answered: met 1\nTool `pair` answered: met 2\n");
}

#[test]
fn tools_are_listed_again_when_the_server_says_that_they_changed() {
    let (server, mut agent, session) = with_tools();
    while server.wait_for("tools/list")["params"]["cursor"].is_null() {}
    assert!(agent.prompt(&session, "call grown").text().contains("no tool `grown`"));
    agent.prompt(&session, "call grow");
    // Nobody asks for it: the list comes by itself, and soon after that its last page is read.
    while server.wait_for("tools/list")["params"]["cursor"].is_null() {}
    while agent.prompt(&session, "call grown").text().contains("no tool `grown`") {}
    let turn = agent.prompt(&session, "rounds 3 grown {\"a\": 1}");
    assert_eq!(turn.text(), "3 rounds, and in the last one: Tool `grown` answered: round 3");
    let inputs: Vec<_> = turn.of_kind("tool_call").map(|call| call["rawInput"].clone()).collect();
    assert_eq!(inputs, [1, 2, 3].map(|round| json!({"a": 1, "round": round})));
}

#[test]
fn images_and_long_results_are_told_by_their_size() {
    let completed = ["pending", "in_progress", "completed"];
    check("call picture", &completed, "answered: [image (image/png), 4 characters]");
    check("call long", &completed, "xxxend (5242888 bytes)");
}

#[test]
fn what_a_prompt_plans_is_what_the_next_ones_are_taken_for() {
    let mut agent = Agent::start();
    let session = agent.session();
    let first = agent.prompt(&session, "json {\"a\":1}\nnext json {\"a\":2}\nnext count");
    assert_eq!(first.text(), "{\"a\":1}");
    assert_eq!(agent.prompt(&session, "that is not right").text(), "{\"a\":2}");
    assert_eq!(agent.prompt(&session, "tool").text(), "This is turn 3 of the session.");
    assert!(agent.prompt(&session, "tool").text().contains("README.md"));
}

#[test]
fn a_server_that_forgot_the_session_is_greeted_again() {
    let (server, mut agent, session) = with_tools();
    server.wait_for("initialize");
    agent.prompt(&session, "call forget");
    assert!(agent.prompt(&session, "call add {\"a\": 1, \"b\": 2}").text().contains("answered: 3"));
    server.wait_for("initialize");
}

#[test]
fn a_cancelled_call_fails_and_the_server_is_told() {
    let (server, mut agent, session) = with_tools();
    let id = agent.send_prompt(&session, "call never");
    let call = server.wait_for("tools/call");
    agent.notify("session/cancel", json!({"sessionId": session}));
    let turn = agent.finish(id, |_| json!({}));
    assert_eq!(turn.stop_reason(), "cancelled");
    assert_eq!(turn.statuses(), ["pending", "in_progress", "failed"]);
    assert_eq!(server.wait_for("notifications/cancelled")["params"]["requestId"], call["id"]);
}

#[test]
fn servers_that_cannot_be_used_are_named_with_the_reason() {
    let mut agent = Agent::start();
    let session = agent.session_with(json!([
        {"name": "local", "command": "/bin/tool", "args": [], "env": []},
        {"type": "sse", "name": "old", "url": "http://127.0.0.1:1/", "headers": []},
        {"type": "http", "name": "far", "url": "http://192.0.2.1/mcp", "headers": []},
        {"type": "http", "name": "shut", "url": "http://127.0.0.1:1/mcp", "headers": []},
    ]));
    let text = agent.prompt(&session, "tools").text();
    assert!(text.contains("`local` cannot be used: the demo agent speaks MCP over `http` only, not `stdio`"), "{text}");
    assert!(text.contains("`old` cannot be used") && text.contains("not `sse`"), "{text}");
    assert!(text.contains("`far` cannot be used") && text.contains("loopback only"), "{text}");
    assert!(text.contains("`shut` cannot be used"), "{text}");
}

#[test]
fn a_wrong_secret_is_told_without_the_secret() {
    let server = McpServer::start();
    let mut entry = server.entry();
    entry["headers"][0]["value"] = "Bearer wrong".into();
    let mut agent = Agent::start();
    let session = agent.session_with(json!([entry]));
    let text = agent.prompt(&session, "tools").text();
    assert!(text.contains("401") && !text.contains("wrong"), "{text}");
}
