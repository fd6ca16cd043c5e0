//! Answers to what a task waits for: decisions about tools of the agent, and results of tools of the client.

use gembridge_core::model::{
    Answer, Ask, AskBody, AskId, CallId, ClientCall, Content, OptionKind, ReturnOutcome, ToolReturn,
};
use serde_json::Value;

use crate::a2a::error::Fault;
use crate::a2a::fold::Pending;
use crate::a2a::model::Part;

/// What a data part decides.
#[derive(Debug, PartialEq)]
pub enum Decision {
    Confirm { call: String, outcome: Outcome },
    Result { call: String, name: String, returned: ToolReturn },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    ProceedOnce,
    ProceedAlways,
    Cancel,
}

/// What the decisions of one message come to.
#[derive(Debug, Default)]
pub struct Resolved {
    pub answers: Vec<(Ask, Answer)>,
    pub results: Vec<(CallId, ToolReturn)>,
}

impl Resolved {
    /// Whether nothing waits any more for what was decided here.
    pub fn is_settled(asks: &[AskId], calls: &[CallId], pending: &Pending) -> bool {
        !pending.questions().any(|ask| asks.contains(&ask.id))
            && !pending.calls().iter().any(|call| calls.contains(&call.id))
    }
}

/// The decisions of a message. A message has decisions or content, never both.
pub fn decisions(parts: &[Part]) -> Result<Vec<Decision>, Fault> {
    let found: Vec<Decision> = parts.iter().filter_map(decision).collect::<Result<_, _>>()?;
    if !found.is_empty() && found.len() < parts.len() {
        return Err(Fault::params(
            "a message has either decisions about tools or content; send the rest as one of its own",
        ));
    }
    Ok(found)
}

fn decision(part: &Part) -> Option<Result<Decision, Fault>> {
    let Part::Data(data) = part else { return None };
    let (call, outcome) = (data.get("callId")?.as_str()?.to_owned(), data.get("outcome")?.as_str()?);
    let outcome = match outcome {
        "inject_result" => return Some(result(call, data)),
        "proceed_once" => Outcome::ProceedOnce,
        "proceed_always" | "proceed_always_tool" | "proceed_always_server" => Outcome::ProceedAlways,
        "cancel" => Outcome::Cancel,
        other => {
            let shown: String = other.chars().take(32).flat_map(char::escape_default).collect();
            let known = "`proceed_once`, `proceed_always`, `cancel` or `inject_result`";
            return Some(Err(Fault::params(format!("the outcome `{shown}` is not known; use {known}"))));
        }
    };
    Some(Ok(Decision::Confirm { call, outcome }))
}

fn result(call: String, data: &Value) -> Result<Decision, Fault> {
    let given = &data["functionResponse"];
    let response = given.get("response").filter(|response| !response.is_null());
    let (Some(name), Some(response)) = (given["name"].as_str(), response) else {
        return Err(Fault::params(format!("the result of `{call}` needs `functionResponse.name` and `.response`")));
    };
    let failed = given["isError"].as_bool().unwrap_or(false) || response["isError"].as_bool().unwrap_or(false);
    let outcome = if failed { ReturnOutcome::Failed } else { ReturnOutcome::Done };
    Ok(Decision::Result { call, name: name.to_owned(), returned: ToolReturn { outcome, content: returned(response) } })
}

/// What a tool gave back: a text, blocks of text and images, or any JSON.
fn returned(response: &Value) -> Vec<Content> {
    let blocks = response.get("content").and_then(Value::as_array).or_else(|| response.as_array());
    let block = |block: &Value| match block["type"].as_str()? {
        "text" => block["text"].as_str().map(Content::text),
        "image" => Some(Content::Image {
            mime: block["mimeType"].as_str()?.into(),
            data: block["data"].as_str()?.into(),
            uri: None,
        }),
        _ => None,
    };
    if let Some(contents) = blocks.and_then(|blocks| blocks.iter().map(block).collect::<Option<Vec<_>>>())
        && !contents.is_empty()
    {
        return contents;
    }
    let text = response.as_str().or_else(|| response.get("output").and_then(Value::as_str));
    vec![Content::text(text.map_or_else(|| response.to_string(), str::to_owned))]
}

/// Finds what each decision is about. All or nothing: one that is about nothing that waits is refused.
pub fn resolve(decisions: Vec<Decision>, pending: &Pending) -> Result<Resolved, Fault> {
    let mut resolved = Resolved::default();
    for decision in decisions {
        match decision {
            Decision::Confirm { call, outcome } => {
                let ask =
                    pending.questions().find(|ask| is_about(ask, &call)).ok_or_else(|| unknown(&call, pending))?;
                resolved.answers.push((ask.clone(), answer(ask, outcome)?));
            }
            Decision::Result { call, returned, .. } => {
                let waits = |waiting: &&ClientCall| waiting.id.to_string() == call;
                let waiting = pending.calls().iter().find(waits).ok_or_else(|| unknown(&call, pending))?;
                resolved.results.push((waiting.id, returned));
            }
        }
    }
    Ok(resolved)
}

/// Results of calls that no longer wait, as text for the agent.
pub fn in_words(decisions: &[Decision]) -> Option<Vec<Content>> {
    let words = decisions.iter().map(|decision| match decision {
        Decision::Confirm { .. } => None,
        Decision::Result { name, returned, .. } => {
            let mut contents = vec![Content::text(format!("The tool {name} gave back:"))];
            contents.extend(returned.content.iter().cloned());
            Some(contents)
        }
    });
    words.collect::<Option<Vec<_>>>().map(|words| words.into_iter().flatten().collect())
}

/// The client says something else: what the agent asked is answered with no.
pub fn reject(pending: &Pending) -> Vec<(Ask, Answer)> {
    pending.questions().map(|ask| (ask.clone(), ask.reject())).collect()
}

fn is_about(ask: &Ask, call: &str) -> bool {
    matches!(&ask.body, AskBody::Permission { tool, .. } if tool.id.as_str() == call)
}

fn answer(ask: &Ask, outcome: Outcome) -> Result<Answer, Fault> {
    let option = |wanted: OptionKind| match &ask.body {
        AskBody::Permission { options, .. } => options.iter().find(|option| option.kind == wanted),
        AskBody::Form { .. } | AskBody::Extension { .. } => None,
    };
    let chosen = match outcome {
        Outcome::Cancel => return Ok(ask.reject()),
        Outcome::ProceedOnce => option(OptionKind::AllowOnce),
        Outcome::ProceedAlways => option(OptionKind::AllowAlways),
    };
    chosen.map(|option| Answer::Option(option.id.clone())).ok_or_else(|| {
        Fault::params("the agent does not offer this outcome; `confirmationDetails.outcomes` lists what it offers")
    })
}

fn unknown(call: &str, pending: &Pending) -> Fault {
    let shown: String = call.chars().take(80).flat_map(char::escape_default).collect();
    let waiting: Vec<String> = pending.calls().iter().map(|call| format!("`{}`", call.id)).collect();
    let rest = if waiting.is_empty() { String::new() } else { format!("; these wait: {}", waiting.join(", ")) };
    Fault::params(format!("nothing waits for `{shown}`; it is unknown, or was answered before{rest}"))
}
