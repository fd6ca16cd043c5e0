//! What is particular to Codex's session files.

use gembridge_transcripts::Agent;
use gembridge_unified::{Block, Role};
use serde_json::{Value, json};

use crate::home::{Content, Home, blocks};

const SESSION: &str = "01a1e3cf-d729-7f52-b319-5efdf6ea15b1";
const NAME: &str = "rollout-2026-11-16T10-03-31-01a1e3cf-d729-7f52-b319-5efdf6ea15b1.jsonl";

fn recorded() -> Content {
    Content::of_fixture(Agent::Codex, &format!("codex/0.166.0/{NAME}"))
}

fn count(total: u64, last: u64) -> Value {
    let tokens = |count: u64| json!({"input_tokens": count, "cached_input_tokens": 0, "output_tokens": 0, "total_tokens": count});
    let info = json!({"total_token_usage": tokens(total), "last_token_usage": tokens(last)});
    json!({"timestamp": "2026-01-01T00:00:00Z", "type": "event_msg", "payload": {"type": "token_count", "info": info}})
}

fn said(id: &str) -> Value {
    let content = json!([{"type": "output_text", "text": "t"}]);
    json!({"timestamp": "2026-01-01T00:00:00Z", "type": "response_item",
        "payload": {"type": "message", "role": "assistant", "id": id, "content": content}})
}

#[test]
fn what_stands_as_an_item_and_as_an_event_is_read_once() {
    let content = recorded();
    let typed: Vec<_> = content.messages.iter().filter(|message| message.role == Role::User).collect();
    let prompts = typed.iter().filter(|message| blocks(message).is_empty()).count();
    assert_eq!(prompts, 2, "{typed:?}");
    let answers = content.messages.iter().filter(|message| message.text() == "You said: ping").count();
    assert_eq!(answers, 1);
}

#[test]
fn counts_of_the_whole_session_are_counted_once() {
    let content = recorded();
    assert_eq!(content.facts.usage.total(), 60);
    let totals: Vec<_> = content.messages.iter().filter_map(|message| message.usage?.total_tokens).collect();
    assert_eq!(totals, [15, 15, 15, 15]);
}

#[test]
fn a_count_that_is_repeated_adds_nothing_and_one_that_begins_anew_adds_its_last_call() {
    let content = Content::of_lines(
        Agent::Codex,
        &[said("a"), count(10, 10), count(10, 10), said("b"), count(25, 15), said("c"), count(4, 4)],
    );
    let totals: Vec<_> = content.messages.iter().filter_map(|message| message.usage?.total_tokens).collect();
    assert_eq!(totals, [10, 15, 4]);
    assert_eq!(content.facts.usage.total(), 29);
}

#[test]
fn a_packed_session_reads_like_the_file_it_was_made_from() {
    let packed = Content::of_fixture(Agent::Codex, &format!("codex/packed/{NAME}.zst"));
    assert!(packed.damages.is_empty(), "{:?}", packed.damages);
    assert_eq!(packed.messages, recorded().messages);
}

#[test]
fn a_packed_session_that_was_cut_is_read_as_far_as_it_goes() {
    let whole = std::fs::read(crate::home::fixture(&format!("codex/packed/{NAME}.zst"))).unwrap();
    let home = Home::new()
        .with_file(&format!(".codex/sessions/2026/11/16/{NAME}.zst"), &whole[..whole.len() / 2])
        .with_file(".codex/archived_sessions/rollout-2026-11-16T10-03-31-other.jsonl.zst", b"not packed at all");
    for session in &home.scan().sessions {
        assert!(!Content::of(session).damages.is_empty(), "{session:?}");
    }
}

#[test]
fn sessions_are_found_by_day_in_the_archive_and_packed_with_their_titles() {
    let home = Home::new()
        .with_fixture(&format!(".codex/sessions/2026/11/16/{NAME}.zst"), &format!("codex/packed/{NAME}.zst"))
        .with_fixture(".codex/session_index.jsonl", "codex/0.166.0/session_index.jsonl")
        .with_fixture(
            ".codex/archived_sessions/rollout-2025-08-01T10-00-00-5973b6c0-94b8-487b-a530-2aeb6098ae0e.jsonl",
            "codex/legacy/rollout-2025-08-01T10-00-00-5973b6c0-94b8-487b-a530-2aeb6098ae0e.jsonl",
        );
    let scan = home.scan();
    assert_eq!(scan.sessions.len(), 2);
    let session = scan.by_id(SESSION).unwrap();
    assert_eq!(session.project.as_deref(), Some(std::path::Path::new("/workspace")));
    assert_eq!(Content::of(session).facts.title.as_deref(), Some("A title"));
    let old = scan.by_id("5973b6c0").unwrap();
    assert_eq!(old.project.as_deref(), Some(std::path::Path::new("/workspace")));
}

#[test]
fn the_code_of_a_command_is_told_in_every_form() {
    let codes = |content: &Content| {
        let code = |block: &Block| if let Block::ToolResult { exit_code, .. } = block { *exit_code } else { None };
        content.messages.iter().flat_map(blocks).filter_map(code).collect::<Vec<_>>()
    };
    assert_eq!(codes(&recorded()), [0, 3]);
    let legacy = Content::of_fixture(
        Agent::Codex,
        "codex/legacy/rollout-2025-08-01T10-00-00-5973b6c0-94b8-487b-a530-2aeb6098ae0e.jsonl",
    );
    assert_eq!(codes(&legacy), [2]);
    assert!(legacy.messages.iter().any(|message| message.text() == "list the files" && message.role == Role::User));
}
