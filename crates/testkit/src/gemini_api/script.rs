//! The instruction in a prompt that decides what the model answers, and where the conversation stands in it.

use serde::Deserialize;
use serde_json::Value;

use super::expect::Expectation;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    calls: Vec<Call>,
}

/// What one model call answers; a list of attempts where the client's retries are to see different answers.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Call {
    Always(Vec<Step>),
    Attempts { attempts: Vec<Vec<Step>> },
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    Text(String),
    /// The same text in so many chunks.
    Repeat {
        text: String,
        times: usize,
    },
    Thought(String),
    Call(Value),
    DelayMs(u64),
    /// A chunk of one's own making.
    Chunk(Value),
    /// Bytes of the event stream as they are.
    Raw(String),
    Usage(Value),
    Finish(String),
    /// `promptFeedback.blockReason`, no candidate.
    Block(String),
    /// The stream ends without a finish reason.
    End(bool),
    /// The connection breaks.
    Cut(bool),
    /// Nothing more comes, the connection stays.
    Stall(bool),
    /// The HTTP status instead of a stream.
    Status(u16),
    /// The body of that status.
    Body(Value),
    /// What the request must hold.
    Expect(Expectation),
}

/// What a request wants to be told.
pub enum Wanted {
    /// What the script has for this call.
    Steps(Vec<Step>),
    /// No script: the user's words.
    Echo(String),
    /// A script that cannot be read, or a request that is not what it expects.
    Broken(String),
}

/// Counts how often a call of a script was answered.
pub trait Attempts {
    fn next(&mut self, script: &str, call: usize) -> usize;
}

pub fn wanted(request: &Value, attempts: &mut impl Attempts) -> Wanted {
    let contents = request["contents"].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(position) = contents.iter().rposition(is_from_the_user) else { return Wanted::Echo(String::new()) };
    let text = text_of(&contents[position]);
    // In a history that is told in one prompt, the script is in what the user said last.
    let newest = text.rsplit_once("[User]\n").map_or(text.as_str(), |(_, newest)| newest);
    let Some(json) = between(newest, "SCRIPT:", ":END") else { return Wanted::Echo(last_text_of(&contents[position])) };
    let script: Script = match serde_json::from_str(json) {
        Ok(script) => script,
        Err(error) => return Wanted::Broken(format!("the script cannot be read: {error}; it was `{json}`")),
    };
    let call = contents[position..].iter().filter(|content| content["role"] == "model").count();
    let steps = match script.calls.into_iter().nth(call) {
        None => vec![Step::Text("(the script has ended)".into())],
        Some(Call::Always(steps)) => steps,
        Some(Call::Attempts { attempts: tries }) => {
            let attempt = attempts.next(json, call).min(tries.len().saturating_sub(1));
            tries.into_iter().nth(attempt).unwrap_or_default()
        }
    };
    let expectations =
        steps.iter().filter_map(|step| if let Step::Expect(expected) = step { Some(expected) } else { None });
    match expectations.into_iter().find_map(|expected| expected.unmet(request, &contents[position..])) {
        Some(sentence) => Wanted::Broken(sentence),
        None => Wanted::Steps(steps),
    }
}

/// Results of tools are sent in the user's name too.
fn is_from_the_user(content: &Value) -> bool {
    let parts = content["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    content["role"] != "model"
        && parts.iter().any(|part| part["text"].is_string())
        && !parts.iter().any(|part| part.get("functionResponse").is_some())
}

fn text_of(content: &Value) -> String {
    let parts = content["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    texts.join("\n")
}

/// The user's own words: what the CLI adds about the workspace stands before them.
fn last_text_of(content: &Value) -> String {
    let parts = content["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().rev().find_map(|part| part["text"].as_str()).unwrap_or_default().to_owned()
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let from = text.find(start)? + start.len();
    let length = text[from..].find(end)?;
    Some(&text[from..from + length])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Zeroth;
    impl Attempts for Zeroth {
        fn next(&mut self, _: &str, _: usize) -> usize {
            0
        }
    }

    fn steps(contents: &Value) -> Vec<Step> {
        match wanted(&json!({"contents": contents}), &mut Zeroth) {
            Wanted::Steps(steps) => steps,
            Wanted::Echo(text) => panic!("an echo of `{text}` instead of a script"),
            Wanted::Broken(sentence) => panic!("{sentence}"),
        }
    }

    #[test]
    fn model_turns_since_the_script_choose_the_call() {
        let user = json!({"role": "user", "parts": [{"text": r#"go SCRIPT:{"calls":[[{"text":"one"}],[{"text":"two"}]]}:END"#}]});
        let model = json!({"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]});
        let result = json!({"role": "user", "parts": [{"functionResponse": {"name": "f"}}, {"text": "a note"}]});
        assert_eq!(steps(&json!([user])), [Step::Text("one".into())]);
        assert_eq!(steps(&json!([user, model, result])), [Step::Text("two".into())]);
        assert_eq!(steps(&json!([user, model, result, model, result])), [Step::Text("(the script has ended)".into())]);
        assert_eq!(steps(&json!([user, model, user])), [Step::Text("one".into())], "a new prompt starts anew");
    }

    #[test]
    fn a_mistake_in_a_script_is_named() {
        let contents = json!([{"role": "user", "parts": [{"text": r#"SCRIPT:{"calls":[[{"txt":"one"}]]}:END"#}]}]);
        let Wanted::Broken(sentence) = wanted(&json!({"contents": contents}), &mut Zeroth) else {
            panic!("a broken script was taken")
        };
        assert!(sentence.contains("cannot be read"), "{sentence}");
    }
}
