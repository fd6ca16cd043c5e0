//! Words of a guest that agents take for commands of their own: they reach the model as words, and nothing runs.

use serde_json::{Value, json};

use crate::server::{Agent, TestServer, prompted};
use crate::support::gateway::said;

/// Prompts, each as blocks of text.
const PROMPTS: [&[&str]; 16] = [
    &["/context"],
    &["/config"],
    &["/config theme=dark"],
    &["/mcp"],
    &["/compact"],
    &["/clear"],
    &["/init"],
    &["/memory show"],
    &[" /help"],
    &["\t\n /help"],
    &["\u{feff}/help"],
    &["$help"],
    &["/con", "text"],
    &["", "/context"],
    &["  ", " /context"],
    &["/", "context"],
];

/// Without the characters that nobody sees.
fn visible(text: &str) -> String {
    text.replace(['\u{200b}', '\u{feff}'], "")
}

fn all_are_words_to(agent: Agent) {
    let server = TestServer::new(agent);
    let mut guest = server.guest();
    let session = guest.new_session();
    let mut obeyed = Vec::new();
    for texts in PROMPTS {
        let (calls, before) = (server.model_calls(), server.asked().len());
        let blocks: Vec<Value> = texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        let (_, answer) = prompted(&mut guest, &session, &json!(blocks));
        let (answer, asked) = (visible(&answer), visible(&server.asked()[before..].concat()));
        let words: Vec<_> = texts.iter().map(|text| visible(text).trim().to_owned()).collect();
        // The fake of Gemini's API repeats the last block only.
        let repeated = answer.starts_with("You said: ") && answer.ends_with(words.last().unwrap());
        if server.model_calls() == calls || !repeated || !words.iter().all(|words| asked.contains(words)) {
            obeyed.push(format!("{texts:?}: {}", answer.chars().take(200).collect::<String>()));
        }
    }
    let answer = server.gateway.complete_as(&server.guest_key, &said("/context"), &[]);
    let text = visible(&answer.text());
    if !text.starts_with("You said: ") || !text.ends_with("/context") {
        obeyed.push(format!("over the OpenAI API: {}", answer.body));
    }
    assert!(obeyed.is_empty(), "{agent:?} obeyed {obeyed:#?}");
}

#[test]
fn f13_commands_of_a_guest_are_words_to_claude_code() {
    all_are_words_to(Agent::Claude);
}

#[test]
fn f13_commands_of_a_guest_are_words_to_opencode() {
    all_are_words_to(Agent::OpenCode);
}

#[test]
fn f13_commands_of_a_guest_are_words_to_the_gemini_cli() {
    all_are_words_to(Agent::Gemini);
}
