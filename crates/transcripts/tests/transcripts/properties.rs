//! What holds for every file: a cut one is the beginning of the whole, and one that grows is read the same in the end.

use gembridge_transcripts::Agent;
use gembridge_unified::{Body, UnifiedMessage};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::damage::logs;
use crate::home::{Content, blocks, text_of};

/// The same messages in the same order, but for what the last ones have not got yet.
fn begins(cut: &[UnifiedMessage], whole: &[UnifiedMessage]) -> Result<(), String> {
    if cut.len() > whole.len() {
        return Err(format!("{} messages of {}", cut.len(), whole.len()));
    }
    for (one, other) in cut.iter().zip(whole) {
        let is_begun = match (&one.content, &other.content) {
            (Body::Text(one), Body::Text(other)) => one == other,
            _ => blocks(other).starts_with(blocks(one)),
        };
        if !is_begun || (one.role, &one.id, one.timestamp) != (other.role, &other.id, other.timestamp) {
            return Err(format!("{one:?}\nis not the beginning of\n{other:?}"));
        }
    }
    Ok(())
}

#[test]
fn every_cut_of_a_recorded_log_is_the_beginning_of_its_messages() {
    for (agent, text) in logs() {
        // A log that is rebuilt later has other messages for a while; all else only grows.
        if agent == Agent::Gemini {
            continue;
        }
        let whole = Content::of_text(agent, &text).messages;
        let ends = text.char_indices().map(|(at, _)| at).step_by(997).chain(text.match_indices('\n').map(|(at, _)| at));
        for end in ends {
            let cut = Content::of_text(agent, &text[..end]);
            assert!(cut.damages.len() <= 1, "only the last line is cut: {:?}", cut.damages);
            begins(&cut.messages, &whole).unwrap_or_else(|error| panic!("{agent:?} cut at {end}: {error}"));
        }
    }
}

/// A log of Gemini CLI in which messages only come, and tools are told where they are called.
fn gemini_log() -> impl Strategy<Value = Vec<Value>> {
    let message = (any::<bool>(), "[a-z ]{0,12}", proptest::option::of(0_u64..100));
    proptest::collection::vec(message, 0..12).prop_map(|messages| {
        let header = json!({"sessionId": "s", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z"});
        let line = |(number, (is_user, text, tokens)): (usize, (bool, String, Option<u64>))| {
            let mut record = json!({"id": format!("m{number}"), "timestamp": "2026-01-01T00:00:01Z",
                "type": if is_user { "user" } else { "gemini" }, "content": [{"text": text}]});
            if let Some(tokens) = tokens.filter(|_| !is_user) {
                record["tokens"] = json!({"input": tokens, "output": 1, "total": tokens + 1});
            }
            record
        };
        std::iter::once(header).chain(messages.into_iter().enumerate().map(line)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_cut_log_of_gemini_cli_is_the_beginning_of_the_whole(lines in gemini_log(), at in any::<prop::sample::Index>()) {
        let text = text_of(&lines);
        let whole = Content::of_text(Agent::Gemini, &text).messages;
        let cut = Content::of_text(Agent::Gemini, &text[..at.index(text.len() + 1)]).messages;
        begins(&cut, &whole).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn messages_that_are_written_again_change_nothing(lines in gemini_log(), again in any::<prop::sample::Index>()) {
        let whole = Content::of_lines(Agent::Gemini, &lines);
        let mut repeated = lines.clone();
        repeated.push(lines[again.index(lines.len())].clone());
        let repeated = Content::of_lines(Agent::Gemini, &repeated);
        prop_assert_eq!(whole.messages, repeated.messages);
        prop_assert_eq!(whole.facts.usage, repeated.facts.usage);
    }

    #[test]
    fn no_line_makes_a_reader_fail(agent in prop::sample::select(&Agent::ALL[..]), text in "\\PC{0,80}", field in 0_usize..8) {
        let names = ["type", "message", "payload", "$set", "id", "content", "toolCalls", "$rewindTo"];
        let odd = json!({names[field]: text, "type": names[(field + 1) % 8], "payload": {"type": "message", "content": [text]}});
        let content = Content::of_text(agent, &format!("{text}\n{odd}\n"));
        prop_assert!(content.damages.len() <= 2);
    }
}

#[test]
fn reading_again_after_an_append_equals_reading_once() {
    for (agent, text) in logs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        let session = gembridge_transcripts::Located::of_file(agent, &path);
        let ends: Vec<_> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        for part in [&text[..ends[ends.len() / 2]], &text[..ends[ends.len() / 2] + 10], &text] {
            std::fs::write(&path, part).unwrap();
            assert_eq!(Content::of(&session).messages, Content::of_text(agent, part).messages, "{agent:?}");
        }
    }
}
