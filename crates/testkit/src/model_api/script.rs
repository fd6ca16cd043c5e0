//! The instruction in a prompt that decides what the model answers, and where the conversation stands in it.

use serde::Deserialize;
use serde_json::Value;

/// A piece of the conversation that a request tells, in any dialect.
#[derive(Debug)]
pub enum Said {
    /// What a user said.
    User(String),
    /// Something that the model said or called; several in a row are one answer.
    Model,
    /// What a tool returned.
    Result(String),
}

/// What the model does next, in any dialect.
#[derive(Debug, PartialEq)]
pub enum Act {
    Text(String),
    Call(Call),
}

/// A call of a tool.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub name: String,
    /// The group that the tool is in, where the agent declares its tools in groups.
    pub namespace: Option<String>,
    pub args: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    calls: Vec<Vec<Step>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    Text(String),
    Call(Call),
    Results(String),
}

/// What the model does next in this conversation, or why that cannot be told.
pub fn acts(conversation: &[Said]) -> Result<Vec<Act>, String> {
    let prompt = conversation.iter().enumerate().rev().find_map(|(position, said)| match said {
        Said::User(text) => Some((position, text)),
        Said::Model | Said::Result(_) => None,
    });
    let Some((position, text)) = prompt else { return Err("there is no message of a user".to_owned()) };
    let Some(json) = text.split_once("SCRIPT:").and_then(|(_, rest)| rest.split_once(":END")).map(|(json, _)| json)
    else {
        return Ok(vec![Act::Text(format!("You said: {text}"))]);
    };
    let script: Script = serde_json::from_str(json).map_err(|error| format!("the script cannot be read: {error}"))?;
    let since = &conversation[position..];
    let steps = script.calls.into_iter().nth(answers(since));
    let steps = steps.unwrap_or_else(|| vec![Step::Text("(the script has ended)".to_owned())]);
    Ok(steps.into_iter().map(|step| step.act(since)).collect())
}

/// How often the model has spoken.
fn answers(since: &[Said]) -> usize {
    since.windows(2).filter(|pair| matches!(pair, [before, Said::Model] if !matches!(before, Said::Model))).count()
}

impl Step {
    fn act(self, since: &[Said]) -> Act {
        match self {
            Self::Text(text) => Act::Text(text),
            Self::Call(call) => Act::Call(call),
            Self::Results(prefix) => {
                let results = since.iter().filter_map(|said| match said {
                    Said::Result(text) => Some(text.as_str()),
                    Said::User(_) | Said::Model => None,
                });
                Act::Text([prefix.as_str()].into_iter().chain(results).collect::<Vec<_>>().join("\n"))
            }
        }
    }
}

/// The text of a message, whole or in parts.
pub fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        parts => {
            let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn user(text: &str) -> Said {
        Said::User(text.to_owned())
    }

    #[test]
    fn the_script_of_the_last_prompt_is_followed_call_by_call() {
        let script = || {
            let steps = json!({"calls": [[{"call": {"name": "f", "args": {}}}], [{"results": "found"}]]});
            user(&format!("please SCRIPT:{steps}:END"))
        };
        let result = || Said::Result("a line".to_owned());
        let call = Act::Call(Call { name: "f".to_owned(), namespace: None, args: json!({}) });
        let text = |text: &str| vec![Act::Text(text.to_owned())];
        for (conversation, expected) in [
            (vec![user("hello")], text("You said: hello")),
            (vec![script()], vec![call]),
            (vec![script(), Said::Model, Said::Model, result()], text("found\na line")),
            (vec![script(), Said::Model, result(), Said::Model, result()], text("(the script has ended)")),
            (vec![script(), Said::Model, result(), user("hello")], text("You said: hello")),
        ] {
            assert_eq!(acts(&conversation), Ok(expected), "{conversation:?}");
        }
    }

    #[test]
    fn a_script_that_cannot_be_read_is_an_error() {
        assert!(acts(&[user("SCRIPT:{\"calls\":[[{\"txt\":\"one\"}]]}:END")]).unwrap_err().contains("cannot be read"));
        assert!(acts(&[Said::Model]).is_err());
    }
}
