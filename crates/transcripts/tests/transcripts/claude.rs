//! What is particular to Claude Code's session files.

use gembridge_transcripts::{Agent, Located};
use gembridge_unified::{Block, Body, Role};
use serde_json::{Value, json};

use crate::home::{Content, Home, blocks, fixture};

const SESSION: &str = "41f6ab9a-7d9c-4301-83a2-9d0f81cb2d62";

fn recorded() -> Content {
    Content::of_fixture(Agent::Claude, &format!("claude/2.1.312/{SESSION}.jsonl"))
}

fn line(kind: &str, uuid: &str, message: &Value) -> Value {
    json!({"type": kind, "uuid": uuid, "timestamp": "2026-01-01T00:00:00Z", "sessionId": "s", "cwd": "/w", "message": message})
}

fn said(id: &str, block: &Value, output: u64) -> Value {
    let usage = json!({"input_tokens": 10, "output_tokens": output, "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 1});
    line(
        "assistant",
        &format!("{id}-{output}"),
        &json!({"id": id, "role": "assistant", "model": "m", "content": [block], "usage": usage}),
    )
}

fn result(of: &str) -> Value {
    line(
        "user",
        of,
        &json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": of, "content": "done"}]}),
    )
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Read", "input": {}})
}

#[test]
fn the_lines_of_one_message_are_one_message_and_its_tokens_are_counted_once() {
    let content = recorded();
    let reading = content.messages.iter().find(|message| message.id == "msg_3").unwrap();
    assert_eq!(blocks(reading).len(), 3, "a text and two calls: {reading:?}");
    assert!(reading.original.as_ref().unwrap().to_value().is_array(), "all of its lines");
    let answers = content.messages.iter().filter(|message| message.role == Role::Assistant).count();
    assert_eq!(content.facts.usage.output_tokens, Some(5 * answers as u64));
}

#[test]
fn the_last_line_of_a_message_has_its_final_count() {
    let text = json!({"type": "text", "text": "t"});
    let content =
        Content::of_lines(Agent::Claude, &[said("m", &text, 1), said("m", &call("c"), 8), said("n", &text, 2)]);
    assert_eq!(content.messages[0].usage.unwrap().output_tokens, Some(8));
    assert_eq!(content.facts.usage.total(), 2 * 111 + 8 + 2);
}

#[test]
fn results_between_the_lines_of_a_message_come_after_it() {
    let content = Content::of_lines(
        Agent::Claude,
        &[said("m", &call("a"), 1), result("a"), said("m", &call("b"), 2), result("b")],
    );
    let ids: Vec<_> = content.messages.iter().map(|message| message.id.as_str()).collect();
    assert_eq!(ids, ["m", "a", "b"]);
    assert_eq!(content.calls(), ["a", "b"]);
}

#[test]
fn bookkeeping_with_a_message_in_it_is_no_turn() {
    let blob =
        json!({"type": "api-request-blob", "message": {"role": "user", "content": [{"type": "text", "text": "no"}]}});
    let content = Content::of_lines(Agent::Claude, &[blob]);
    assert_eq!((content.messages, content.damages), (vec![], vec![]));
}

#[test]
fn a_failed_command_has_an_exit_code() {
    let content = recorded();
    let found = content.messages.iter().flat_map(blocks).find_map(|block| match block {
        Block::ToolResult { exit_code: Some(code), is_error, .. } => Some((*code, *is_error)),
        _ => None,
    });
    assert_eq!(found, Some((3, true)));
}

#[test]
fn what_the_program_adds_in_the_name_of_the_user_is_of_the_system() {
    let mut added = line("user", "a", &json!({"role": "user", "content": "Caveat"}));
    added["isMeta"] = json!(true);
    let typed = line("user", "b", &json!({"role": "user", "content": "hello"}));
    let content = Content::of_lines(Agent::Claude, &[added, typed]);
    let roles: Vec<_> = content.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User]);
    assert_eq!(content.messages[1].content, Body::Text("hello".to_owned()));
}

#[test]
fn lines_of_a_subagent_in_the_file_of_its_session_are_counted_and_not_shown() {
    let text = json!({"type": "text", "text": "t"});
    let mut of_subagent = said("s", &text, 3);
    of_subagent["isSidechain"] = json!(true);
    let content = Content::of_lines(Agent::Claude, &[said("m", &text, 1), of_subagent]);
    assert_eq!(content.messages.len(), 1);
    assert_eq!(content.facts.usage.output_tokens, Some(4));
}

#[test]
fn subagents_are_linked_in_both_layouts() {
    let project = ".claude/projects/-workspace";
    let subagent = format!("{SESSION}/subagents/agent-acc69d26505d36192.jsonl");
    let nested = Home::new()
        .with_fixture(&format!("{project}/{SESSION}.jsonl"), &format!("claude/2.1.312/{SESSION}.jsonl"))
        .with_fixture(&format!("{project}/{subagent}"), &format!("claude/2.1.312/{subagent}"));
    let beside = Home::new()
        .with_fixture(&format!("{project}/{SESSION}.jsonl"), &format!("claude/2.1.312/{SESSION}.jsonl"))
        .with_fixture(&format!("{project}/agent-acc69d26505d36192.jsonl"), &format!("claude/2.1.312/{subagent}"));
    for home in [nested, beside] {
        let scan = home.scan();
        let session = scan.by_id(SESSION).unwrap();
        let of_session = scan.subagents(session);
        assert_eq!(of_session.len(), 1, "{:?}", scan.sessions);
        assert!(!Content::of(of_session[0]).messages.is_empty());
    }
}

#[test]
fn an_image_keeps_its_data() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}});
    let content = Content::of_lines(Agent::Claude, &[line("user", "a", &json!({"role": "user", "content": [image]}))]);
    assert!(matches!(&blocks(&content.messages[0])[0], Block::Image { .. }));
}

#[test]
fn the_title_and_the_version_are_the_agents_own() {
    let facts = recorded().facts;
    assert_eq!((facts.title.as_deref(), facts.version.as_deref()), (Some("A title"), Some("2.1.312")));
    let session = Located::of_file(Agent::Claude, fixture(&format!("claude/2.1.312/{SESSION}.jsonl")));
    assert_eq!(session.id, SESSION);
}
