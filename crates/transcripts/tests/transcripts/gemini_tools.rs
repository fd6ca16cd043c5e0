//! One recorded session in which Gemini CLI used every tool that has a counterpart of the first rank.

use gembridge_transcripts::Agent;
use gembridge_unified::{Block, Body, Role};
use serde_json::{Value, json};

use crate::home::{Content, blocks};

/// Each call with its input and its result.
fn calls() -> Vec<(String, Value, String, bool, Option<i64>)> {
    let content = Content::of_fixture(Agent::Gemini, "gemini/0.61.0/headless_every_tool.jsonl");
    assert_eq!(content.damages, []);
    let mut calls = Vec::new();
    for message in content.messages.iter().filter(|message| message.role == Role::Assistant) {
        for pair in blocks(message).windows(2) {
            if let [
                Block::ToolUse { id, name, input },
                Block::ToolResult { tool_use_id, content, is_error, exit_code },
            ] = pair
            {
                assert_eq!(id, tool_use_id, "a result stands behind its call");
                let Body::Text(text) = content else { panic!("{content:?}") };
                calls.push((name.clone(), input.clone(), text.clone(), *is_error, *exit_code));
            }
        }
    }
    calls
}

#[test]
fn every_tool_has_the_name_and_the_input_of_its_counterpart() {
    let found: Vec<_> = calls().into_iter().map(|(name, input, ..)| (name, input)).collect();
    let expected = [
        ("Write", json!({"file_path": "/workspace/a.txt", "content": "one\ntwo\n"})),
        // Without `instruction`.
        ("Edit", json!({"file_path": "/workspace/a.txt", "old_string": "two", "new_string": "2"})),
        ("Glob", json!({"pattern": "*", "path": "/workspace"})),
        ("WebSearch", json!({"query": "rust fts5"})),
        ("Read", json!({"file_path": "/workspace/a.txt", "offset": 1, "limit": 1})),
        ("Read", json!({"file_path": "/workspace/missing.txt"})),
        ("Bash", json!({"command": "echo made; exit 3", "description": "fails"})),
    ];
    assert_eq!(found, expected.map(|(name, input)| (name.to_owned(), input)));
}

#[test]
fn successes_errors_and_exit_codes_are_told_apart() {
    let found = calls();
    let states: Vec<_> = found.iter().map(|(.., is_error, code)| (*is_error, *code)).collect();
    let (good, bad) = ((false, None), (true, None));
    assert_eq!(states, [good, good, good, good, good, bad, (false, Some(3))]);
    assert!(found[5].2.contains("File not found"), "{}", found[5].2);
}

#[test]
fn thoughts_stand_before_the_call_and_before_the_text_of_their_message() {
    let content = Content::of_fixture(Agent::Gemini, "gemini/0.61.0/headless_every_tool.jsonl");
    let answers: Vec<_> = content.messages.iter().filter(|message| message.role == Role::Assistant).collect();
    let first = blocks(answers[0]);
    assert_eq!(first[0], Block::Thinking { thinking: "Planning: the file first".to_owned() });
    assert!(matches!(&first[1], Block::ToolUse { name, .. } if name == "Write"), "{first:?}");
    let last = blocks(answers.last().unwrap());
    assert_eq!(last[0], Block::Thinking { thinking: "Done: with all".to_owned() });
    assert_eq!(last[1], Block::Text { text: "All tools ran.".to_owned() });
    let usage = content.facts.usage;
    assert_eq!(usage.input_tokens.zip(usage.output_tokens), Some((8_000, 160)), "{usage:?}");
}
