//! Tokens are counted once, the same way whether messages are made of a session or not.

use std::fs;

use gembridge_transcripts::{Agent, Counted, Damage, Located, Spent, Tokens, spent};
use serde_json::{Value, json};

use crate::finding::everything;
use crate::golden::recorded;
use crate::home::{Content, Home, text_of};

fn all(session: &Located) -> (Vec<Spent>, Vec<Damage>) {
    let mut found = Vec::new();
    let damages = spent(session, &mut |spent| found.push(spent));
    (found, damages)
}

fn sum(found: &[Spent]) -> Tokens {
    let mut sum = Tokens::default();
    for spent in found {
        sum.add(&spent.tokens);
    }
    sum
}

fn of_lines(agent: Agent, lines: &[Value]) -> Vec<Spent> {
    of_text(agent, &text_of(lines)).0
}

fn of_text(agent: Agent, text: &str) -> (Vec<Spent>, Vec<Damage>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    fs::write(&path, text).unwrap();
    all(&Located::of_file(agent, path))
}

#[test]
fn every_recorded_session_costs_what_its_messages_cost() {
    for (agent, folder) in
        [(Agent::Gemini, "gemini"), (Agent::Claude, "claude"), (Agent::Codex, "codex"), (Agent::Qwen, "qwen")]
    {
        for path in recorded(folder) {
            let session = Located::of_file(agent, &path);
            let usage = Content::of(&session).facts.usage;
            let (found, damages) = all(&session);
            let tokens = sum(&found);
            let shown = path.display();
            assert_eq!(damages, [], "{shown}");
            assert_eq!(tokens.total(), usage.total(), "{shown}");
            assert_eq!(tokens.cache_read, usage.cache_read_tokens.unwrap_or(0), "{shown}");
            assert_eq!(tokens.output, usage.output_tokens.unwrap_or(0), "{shown}");
            let cached = if agent == Agent::Claude { 0 } else { tokens.cache_read };
            assert_eq!(tokens.input + cached, usage.input_tokens.unwrap_or(0), "{shown}");
            assert!(found.iter().all(|spent| spent.at > 1_700_000_000_000), "{shown}: {found:?}");
        }
    }
}

#[test]
fn a_session_of_every_agent_has_its_model_and_tokens() {
    let home = everything();
    let scan = home.scan();
    for (agent, model, total) in [
        (Agent::Claude, "fake", 105),
        (Agent::Codex, "gpt-5.5", 60),
        (Agent::Gemini, "gemini-3.8-flash", 3084),
        (Agent::OpenCode, "m", 75),
        (Agent::Qwen, "m", 75),
    ] {
        let session = scan.sessions.iter().find(|session| session.agent == agent).unwrap();
        let (found, _) = all(session);
        assert_eq!(sum(&found).total(), total, "{agent:?}");
        assert!(found.iter().all(|spent| spent.model.as_deref() == Some(model)), "{agent:?}: {found:?}");
    }
}

fn answer(id: &str, output: u64) -> Value {
    json!({"type": "assistant", "timestamp": "2026-01-01T00:00:00Z", "requestId": "r", "message":
        {"id": id, "model": "opus", "role": "assistant", "content": [], "usage":
            {"input_tokens": 3, "output_tokens": output, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}}})
}

#[test]
fn lines_of_one_answer_count_once_with_the_count_of_the_last() {
    let found = of_lines(Agent::Claude, &[answer("a", 1), answer("a", 7), answer("b", 2)]);
    let expected = Tokens { input: 6, output: 9, cache_read: 200, cache_write: 40, ..Tokens::default() };
    assert_eq!((found.len(), sum(&found)), (2, expected));
}

#[test]
fn an_answer_that_was_copied_into_another_session_counts_once() {
    let text = text_of(&[answer("a", 1), answer("b", 2)]);
    let copied = text_of(&[answer("a", 1), answer("b", 2), answer("c", 4)]);
    let home =
        Home::new().with_file(".claude/projects/p/one.jsonl", text).with_file(".claude/projects/p/two.jsonl", copied);
    let mut counted = Counted::default();
    let mut output = 0;
    for session in home.scan().sessions {
        spent(&session, &mut |spent| {
            if counted.is_new(&spent) {
                output += spent.tokens.output;
            }
        });
    }
    assert_eq!(output, 7);
}

#[test]
fn lines_that_only_speak_of_usage_are_no_answers_and_damage_is_told_by_line() {
    let talk = json!({"type": "user", "message": {"role": "user", "content": "what is \"usage\"?"}});
    let odd = json!({"type": "api-request-blob", "message": 7, "usage": {"input_tokens": 5}});
    let text = format!("{talk}\n{odd}\n\n{{\"usage\": cut\n{}\n", answer("a", 1));
    let (found, damages) = of_text(Agent::Claude, &text);
    assert_eq!(sum(&found).output, 1);
    assert_eq!(damages.iter().map(|damage| damage.line).collect::<Vec<_>>(), [Some(4)]);
    // Blanks around what is looked for make no difference.
    let spread = serde_json::to_string_pretty(&answer("a", 1)).unwrap().replace('\n', " ");
    assert_eq!(sum(&of_text(Agent::Claude, &spread).0).output, 1);
}

#[test]
fn tokens_of_gemini_cli_survive_that_a_session_is_resumed_or_taken_back() {
    let message = |tokens: Value| json!({"id": "m", "timestamp": "2026-01-01T00:00:01Z", "type": "gemini", "content": "x", "model": "flash", "tokens": tokens});
    let counts = json!({"input": 100, "output": 10, "cached": 40, "thoughts": 5, "tool": 2, "total": 117});
    let found = of_lines(
        Agent::Gemini,
        &[
            json!({"sessionId": "s", "projectHash": "h"}),
            message(Value::Null),
            message(counts.clone()),
            message(counts),
            json!({"$set": {"messages": [{"id": "m", "type": "gemini", "content": "x"}], "tokens": null}}),
            json!({"$rewindTo": "m"}),
        ],
    );
    let expected = Tokens { input: 60, output: 10, thoughts: 5, cache_read: 40, other: 2, cache_write: 0 };
    assert_eq!((found.len(), sum(&found)), (1, expected));
    assert_eq!(found[0].model.as_deref(), Some("flash"));
}

#[test]
fn an_object_over_several_lines_under_the_name_of_a_log_is_read() {
    let object = json!({"sessionId": "s", "projectHash": "h", "messages":
        [{"id": "m", "type": "gemini", "content": "x", "tokens": {"input": 1, "output": 2, "total": 3}}]});
    let (found, damages) = of_text(Agent::Gemini, &serde_json::to_string_pretty(&object).unwrap());
    assert_eq!((sum(&found).total(), damages), (3, vec![]));
    let (found, damages) = of_text(Agent::Gemini, "{\n\"tokens\": 1,\n\n");
    assert_eq!((found, damages.len()), (vec![], 1));
}
