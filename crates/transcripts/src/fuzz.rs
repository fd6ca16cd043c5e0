//! Session files, damaged: no reader panics or hangs.

use std::fs;
use std::mem::{Discriminant, discriminant};
use std::path::Path;

use gembridge_testkit::fuzz::{Fuzz, signature};
use gembridge_unified::{Block, Body};

use crate::agent::Agent;
use crate::opencode;
use crate::output::{Output, Piece, ReadOptions};
use crate::session::{Facts, Located, read};

const WORDS: &[&str] = &[
    "\"$set\":{\"messages\":[",
    "\"$rewindTo\":\"",
    "\"toolCalls\":[",
    "\"functionCall\":{",
    "\"functionResponse\":{",
    "\"tool_result\"",
    "\"tool_use\"",
    "\"response_item\"",
    "\"token_count\"",
    "\"isSidechain\":true",
    "\\ud83d",
    "18446744073709551615",
    "null",
];

/// What was read, by kinds: inputs that read as something new are worth more mutations.
#[derive(Default, Hash)]
struct Shape {
    blocks: Vec<Discriminant<Block>>,
    texts: usize,
    damages: usize,
}

impl Shape {
    fn add(&mut self, piece: &Piece) {
        match piece {
            Piece::Damage(_) => self.damages += 1,
            Piece::Message(message) => match &message.content {
                Body::Text(_) => self.texts += 1,
                Body::Blocks(blocks) => self.blocks.extend(blocks.iter().map(discriminant)),
            },
        }
    }
}

fn check(name: &'static str, agent: Agent, file: &'static str) {
    let folder = tempfile::tempdir().unwrap();
    Fuzz::named(name).words(WORDS).check(move |input| {
        let path = folder.path().join(file);
        fs::write(&path, input).unwrap();
        let mut shape = Shape::default();
        read(&Located::of_file(agent, path), ReadOptions::default(), &mut |piece| shape.add(&piece));
        signature(&shape)
    });
}

#[test]
fn s31_fuzz_transcript_gemini() {
    check("transcript-gemini", Agent::Gemini, "session.jsonl");
}

#[test]
fn s31_fuzz_transcript_claude() {
    check("transcript-claude", Agent::Claude, "session.jsonl");
}

#[test]
fn s31_fuzz_transcript_codex() {
    check("transcript-codex", Agent::Codex, "session.jsonl");
}

#[test]
fn s31_fuzz_transcript_packed() {
    check("transcript-packed", Agent::Codex, "session.jsonl.zst");
}

#[test]
fn s31_fuzz_transcript_qwen() {
    check("transcript-qwen", Agent::Qwen, "session.jsonl");
}

/// A message and its parts, as a row of the database or a file has them.
#[test]
fn s31_fuzz_transcript_opencode() {
    Fuzz::named("transcript-opencode").words(WORDS).check(|input| {
        let Ok(row) = serde_json::from_slice::<serde_json::Value>(input) else { return 0 };
        let parts = row["parts"].as_array().cloned().unwrap_or_default();
        let mut shape = Shape::default();
        let mut add = |piece: Piece| shape.add(&piece);
        let mut out = Output::new(Agent::OpenCode, ReadOptions::default(), Path::new("opencode.db"), &mut add);
        opencode::message("id", &row["info"], &parts, &mut Facts::default(), &mut out);
        signature(&shape)
    });
}
