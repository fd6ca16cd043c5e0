//! What is particular to Qwen Code's session files.

use gembridge_transcripts::Agent;
use gembridge_unified::{Block, Role};
use serde_json::json;

use crate::home::{Content, Home, blocks};

const SESSION: &str = "9d5a4213-0eea-4659-ba4f-e0cab9be633a";

fn recorded() -> Content {
    Content::of_fixture(Agent::Qwen, &format!("qwen/0.24.4/{SESSION}.jsonl"))
}

#[test]
fn calls_have_their_results_and_failed_ones_are_errors() {
    let content = recorded();
    assert_eq!(content.calls().len(), 4);
    assert_eq!(content.results().len(), 4);
    let failed: Vec<_> = content
        .messages
        .iter()
        .flat_map(blocks)
        .filter_map(|block| match block {
            Block::ToolResult { is_error: true, exit_code, .. } => Some(*exit_code),
            _ => None,
        })
        .collect();
    assert_eq!(failed, [None, Some(3)], "a file that is not there, and a command that failed");
}

#[test]
fn tokens_are_those_of_the_answers_and_not_of_the_events_beside_them() {
    let content = recorded();
    let answers = content.messages.iter().filter(|message| message.role == Role::Assistant).count();
    assert_eq!(content.facts.usage.total(), 15 * answers as u64);
}

#[test]
fn what_the_program_says_in_the_name_of_the_user_is_of_the_system() {
    let line = |from: &str| {
        json!({"uuid": from, "timestamp": "2026-01-01T00:00:00Z", "type": "user", "provenance": from,
            "message": {"role": "user", "parts": [{"text": "t"}]}})
    };
    let content = Content::of_lines(Agent::Qwen, &[line("real_user"), line("system_reminder")]);
    let roles: Vec<_> = content.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::System]);
}

#[test]
fn sessions_subagents_and_the_old_layout_are_found() {
    let home = Home::new()
        .with_fixture(
            &format!(".qwen/projects/-workspace/chats/{SESSION}.jsonl"),
            &format!("qwen/0.24.4/{SESSION}.jsonl"),
        )
        .with_fixture(
            &format!(".qwen/projects/-workspace/subagents/{SESSION}/agent-explore-1.jsonl"),
            &format!("qwen/0.24.4/{SESSION}.jsonl"),
        )
        .with_fixture(".qwen/tmp/abc/chats/session-old.json", "gemini/0.22.4/headless_session-3e1932d2.json");
    let scan = home.scan();
    assert_eq!(scan.sessions.len(), 3);
    assert_eq!(scan.subagents(scan.by_id(SESSION).unwrap()).len(), 1);
    let old = Content::of(scan.by_id("3e1932d2").unwrap());
    assert!(!old.messages.is_empty());
    assert!(old.messages.iter().all(|message| message.tool == "qwen"));
}
