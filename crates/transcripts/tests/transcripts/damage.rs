//! What is damaged is reported by place, and the rest is read.

use std::fs;

use gembridge_transcripts::{Agent, Located, Piece, ReadOptions, read};
use serde_json::json;

use crate::home::{Content, Home, fixture};

/// A recorded log of each agent that writes lines.
pub fn logs() -> Vec<(Agent, String)> {
    [
        (Agent::Gemini, "gemini/0.61.0/headless_yolo_tools_summary.jsonl"),
        (Agent::Gemini, "gemini/0.61.0/headless_resumed_main.jsonl"),
        (Agent::Claude, "claude/2.1.312/41f6ab9a-7d9c-4301-83a2-9d0f81cb2d62.jsonl"),
        (Agent::Codex, "codex/0.166.0/rollout-2026-11-16T10-03-31-01a1e3cf-d729-7f52-b319-5efdf6ea15b1.jsonl"),
        (Agent::Qwen, "qwen/0.24.4/9d5a4213-0eea-4659-ba4f-e0cab9be633a.jsonl"),
    ]
    .into_iter()
    .map(|(agent, name)| (agent, fs::read_to_string(fixture(name)).unwrap()))
    .collect()
}

#[test]
fn a_damaged_line_is_reported_by_its_number_and_the_others_are_read() {
    for (agent, text) in logs() {
        let whole = Content::of_text(agent, &text);
        let mut lines: Vec<_> = text.lines().collect();
        lines.insert(1, "{\"cut");
        lines.insert(3, "");
        let content = Content::of_text(agent, &lines.join("\n"));
        assert_eq!(content.messages, whole.messages, "{agent:?}");
        assert_eq!(content.damages.len(), 1, "{agent:?}: {:?}", content.damages);
        assert_eq!(content.damages[0].line, Some(2), "{agent:?}");
        assert!(content.damages[0].to_string().contains(".jsonl:2: "), "{}", content.damages[0]);
    }
}

#[test]
fn lines_of_a_form_that_nobody_knows_are_passed_over() {
    let odd =
        ["null", "[]", "7", "\"text\"", "{}", "{\"type\":7}", "{\"id\":null}", "{\"type\":\"later-version\",\"x\":[]}"];
    for (agent, text) in logs() {
        let whole = Content::of_text(agent, &text);
        let content = Content::of_text(agent, &format!("{text}{}\n", odd.join("\n")));
        assert_eq!((content.messages, content.damages), (whole.messages, vec![]), "{agent:?}");
    }
}

#[test]
fn a_line_that_is_not_text_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    fs::write(&path, b"\xff\xfe\n{\"type\":\"ai-title\",\"aiTitle\":\"T\"}\n").unwrap();
    let content = Content::of(&Located::of_file(Agent::Claude, path));
    assert_eq!(content.damages[0].line, Some(1));
    assert_eq!(content.facts.title.as_deref(), Some("T"));
}

#[test]
fn a_damaged_object_is_reported_with_the_place_of_the_fault() {
    let home = Home::new()
        .with_file(".gemini/tmp/p/chats/session-a.json", "{\"sessionId\": \"a\",\n \"messages\": [")
        .with_fixture(".gemini/tmp/p/chats/session-b.json", "gemini/0.22.4/headless_session-3e1932d2.json");
    let scan = home.scan();
    assert_eq!(scan.sessions.len(), 2);
    let damaged = Content::of(scan.by_id("session-a").unwrap());
    assert!(damaged.damages[0].to_string().contains("session-a.json: EOF while parsing"), "{}", damaged.damages[0]);
    assert_eq!(Content::of(scan.by_id("3e1932d2").unwrap()).damages, []);
}

#[test]
fn a_file_that_vanished_is_reported() {
    for agent in [Agent::Claude, Agent::Codex, Agent::Gemini, Agent::Qwen] {
        for name in ["gone.jsonl", "gone.json"] {
            let content = Content::of(&Located::of_file(agent, format!("/nowhere/{name}")));
            assert_eq!(content.messages, []);
            assert!(content.damages[0].reason.starts_with("cannot be opened"), "{:?}", content.damages);
        }
    }
}

#[test]
fn damage_is_told_where_it_is_met_in_a_stream() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let line =
        |text: &str| json!({"type": "user", "uuid": text, "message": {"role": "user", "content": text}}).to_string();
    fs::write(&path, format!("{}\n{{\n{}\n", line("a"), line("b"))).unwrap();
    let mut order = Vec::new();
    read(&Located::of_file(Agent::Claude, path), ReadOptions::default(), &mut |piece| {
        order.push(match piece {
            Piece::Message(message) => message.text(),
            Piece::Damage(_) => "damage".to_owned(),
        });
    });
    assert_eq!(order, ["a", "damage", "b"]);
}
