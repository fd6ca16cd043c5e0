//! Every recorded session, and beside it what it reads as: `NAME.expected.json`.
//!
//! `UPDATE_GOLDEN=1` writes the files anew; read the difference before you commit it.

use std::path::{Path, PathBuf};

use gembridge_transcripts::{Agent, Located, Piece, ReadOptions, read};
use gembridge_unified::Originals;
use gembridge_unified::tool_names::ToolNames;
use serde_json::{Value, json};

use crate::home::{Home, fixture};

#[expect(clippy::disallowed_methods, reason = "the switch of a test is no setting of the product")]
fn update_is_wanted() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

/// Originals are the recorded file itself; they are checked apart.
fn rendered(session: &Located) -> Value {
    let options = ReadOptions { originals: Originals::Leave, tool_names: ToolNames::Extended };
    let (mut messages, mut damages) = (Vec::new(), Vec::new());
    let facts = read(session, options, &mut |piece| match piece {
        Piece::Message(message) => messages.push(*message),
        Piece::Damage(damage) => damages.push(json!([damage.line, damage.reason])),
    });
    json!({ "facts": facts, "messages": messages, "damages": damages })
}

#[track_caller]
fn compare(path: &Path, actual: &Value) {
    let actual = format!("{actual:#}\n");
    if update_is_wanted() {
        std::fs::write(path, &actual).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(actual == expected, "{} differs; UPDATE_GOLDEN=1 writes it anew\n{actual}", path.display());
}

/// The sessions below a folder of fixtures.
pub fn recorded(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![fixture(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                folders.push(path);
            } else if [".jsonl", ".json", ".zst"].iter().any(|end| name.ends_with(end))
                && !name.ends_with(".expected.json")
                && !["projects.json", "logs.json", "session_index.jsonl"].contains(&name)
                && !name.ends_with(".meta.json")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[track_caller]
fn check(agent: Agent, folder: &str, at_least: usize) {
    let paths = recorded(folder);
    assert!(paths.len() >= at_least, "{paths:?}");
    for path in paths {
        let mut expected = path.clone().into_os_string();
        expected.push(".expected.json");
        compare(Path::new(&expected), &rendered(&Located::of_file(agent, &path)));
    }
}

#[test]
fn sessions_of_gemini_cli_read_as_recorded() {
    check(Agent::Gemini, "gemini", 17);
}

#[test]
fn sessions_of_claude_code_read_as_recorded() {
    check(Agent::Claude, "claude", 2);
}

#[test]
fn sessions_of_codex_read_as_recorded() {
    check(Agent::Codex, "codex", 1);
}

#[test]
fn sessions_of_qwen_code_read_as_recorded() {
    check(Agent::Qwen, "qwen", 1);
}

#[test]
fn a_session_of_opencode_reads_the_same_from_its_database_and_from_its_folders() {
    let (database, folders) = (Home::new().with_opencode_database(), Home::new().with_opencode_folders());
    let read_first = |home: &Home| {
        let scan = home.scan();
        assert_eq!(scan.damages, []);
        rendered(&scan.sessions[0])
    };
    let expected = fixture("opencode/1.18.33/opencode.sql.expected.json");
    compare(&expected, &read_first(&database));
    compare(&expected, &read_first(&folders));
}

#[test]
fn every_message_carries_the_records_that_it_was_made_from() {
    for (agent, folder) in
        [(Agent::Gemini, "gemini"), (Agent::Claude, "claude"), (Agent::Codex, "codex"), (Agent::Qwen, "qwen")]
    {
        for path in recorded(folder) {
            let session = Located::of_file(agent, &path);
            read(&session, ReadOptions::default(), &mut |piece| {
                if let Piece::Message(message) = piece {
                    let original = message.original.as_ref().expect("an original").to_value();
                    let mut line = Vec::new();
                    message.append_json(&mut line).unwrap();
                    assert!(!line.contains(&b'\n'), "an export has a message a line");
                    let id = message.id.as_str();
                    assert!(original.to_string().contains(id) || id.starts_with("item_"), "{id}: {original}");
                }
            });
        }
    }
}
