//! What was said, in the core's words: borrowed from the request.

use std::borrow::Cow;

use gembridge_core::model::PromptAbilities;
use gembridge_core::session::conversation::{CallName, MediaKind, Part, Role, Said, Words};

use super::{brief, media};
use crate::openai::wire::{ChatRequest, Content, Message, OneOrMany, ToolCall};
use crate::problem::Problem;

/// The conversation, borrowed from the request.
pub fn conversation<'a>(request: &'a ChatRequest<'_>) -> Result<Vec<Said<'a>>, Problem> {
    let messages = request.messages.as_ref().map_or(&[][..], |messages| &messages.0);
    if messages.is_empty() {
        return Err(Problem::invalid("messages", "`messages` is empty; say at least one thing"));
    }
    let mut calling = None;
    let mut conversation = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        if message.tool_calls.is_some() {
            calling = Some(message);
        }
        conversation.push(said(at, message, calling)?);
    }
    if conversation.last().is_some_and(says_nothing) {
        let param = format!("messages[{}].content", messages.len() - 1);
        return Err(Problem::invalid(param, "the newest message is empty; say something in it"));
    }
    Ok(conversation)
}

/// A user's message without a word and without anything else.
fn says_nothing(said: &Said<'_>) -> bool {
    said.role == Role::User && said.parts().all(|part| matches!(part, Part::Text(text) if text.trim().is_empty()))
}

/// `calling` is the nearest message with calls.
fn said<'a>(at: usize, message: &'a Message<'_>, calling: Option<&'a Message<'_>>) -> Result<Said<'a>, Problem> {
    let role = match message.role.as_deref() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        other => {
            let message = match other {
                Some(other) => format!("`{}` is no role of a message", brief(other)),
                None => "a message has no role".to_owned(),
            };
            let message = format!("{message}; use `system`, `developer`, `user`, `assistant` or `tool`");
            return Err(Problem::invalid(format!("messages[{at}].role"), message));
        }
    };
    let called = calls(at, message)?;
    let content = message.content.as_ref();
    let words = match (content, role) {
        (Some(OneOrMany::One(text)), Role::System | Role::User) => Words::Text(text),
        (Some(OneOrMany::One(text)), Role::Assistant) if called.is_empty() => Words::Text(text),
        (None, Role::Assistant) if called.is_empty() => Words::Text(message.refusal.as_deref().unwrap_or_default()),
        (None, Role::System | Role::User | Role::Tool) => {
            let param = format!("messages[{at}].content");
            return Err(Problem::invalid(param, "a message has no `content`; give it a string or parts"));
        }
        (content, _) => {
            let mut parts = Vec::new();
            if role == Role::Tool {
                parts.extend(answered(calling, message).map(Part::ResultOf));
            }
            if let Some(content) = content {
                parts.extend(self::parts(at, content)?);
            }
            if !called.is_empty() {
                parts.retain(|part| !matches!(part, Part::Text("")));
                parts.extend(called);
            }
            Words::Parts(parts)
        }
    };
    Ok(Said { role, words })
}

/// The calls that the message at this place makes.
fn calls<'a>(at: usize, message: &'a Message<'_>) -> Result<Vec<Part<'a>>, Problem> {
    let calls = message.tool_calls.as_ref().map_or(&[][..], |calls| &calls.0);
    let several = calls.len() > 1;
    let part = |(number, call): (usize, &'a ToolCall<'_>)| {
        let Some(Called { tool, arguments }) = called(call) else {
            let param = format!("messages[{at}].tool_calls[{number}]");
            return Err(Problem::invalid(param, "a call has neither `function` nor `custom`; say what was called"));
        };
        Ok(Part::Call { call: CallName { tool, place: several.then_some(number + 1) }, arguments })
    };
    let mut parts = calls.iter().enumerate().map(part).collect::<Result<Vec<_>, _>>()?;
    if let Some(function) = &message.function_call {
        let Called { tool, arguments } = Called::new(function.name.as_deref(), function.arguments.as_deref());
        parts.push(Part::Call { call: CallName { tool, place: None }, arguments });
    }
    Ok(parts)
}

struct Called<'a> {
    tool: &'a str,
    arguments: &'a str,
}

impl<'a> Called<'a> {
    fn new(tool: Option<&'a str>, arguments: Option<&'a str>) -> Self {
        Self { tool: tool.unwrap_or_default(), arguments: arguments.unwrap_or_default() }
    }
}

fn called<'a>(call: &'a ToolCall<'_>) -> Option<Called<'a>> {
    match (&call.function, &call.custom) {
        (Some(function), _) => Some(Called::new(function.name.as_deref(), function.arguments.as_deref())),
        (None, Some(custom)) => Some(Called::new(custom.name.as_deref(), custom.input.as_deref())),
        (None, None) => None,
    }
}

/// Which call the message is the result of.
fn answered<'a>(calls: Option<&'a Message<'_>>, result: &'a Message<'_>) -> Option<CallName<'a>> {
    if let (None, Some(name)) = (&result.tool_call_id, &result.name) {
        return Some(CallName { tool: name, place: None });
    }
    let calls = &calls?.tool_calls.as_ref()?.0;
    let at = calls.iter().position(|call| call.id.is_some() && call.id == result.tool_call_id)?;
    let tool = called(&calls[at])?.tool;
    Some(CallName { tool, place: (calls.len() > 1).then_some(at + 1) })
}

fn parts<'a>(at: usize, content: &'a Content<'_>) -> Result<Vec<Part<'a>>, Problem> {
    match content {
        OneOrMany::One(text) => Ok(vec![Part::Text(text)]),
        OneOrMany::Many(parts) => {
            let place = |part: usize| format!("messages[{at}].content[{part}]");
            parts.iter().enumerate().map(|(number, part)| media::part(part, || place(number))).collect()
        }
    }
}

/// The conversation as this agent can be told it: what tools gave back reaches it by its tool server, whatever kind it
/// is, but not in a prompt.
pub fn for_prompts<'c, 'a>(conversation: &'c [Said<'a>], abilities: PromptAbilities) -> Cow<'c, [Said<'a>]> {
    let is_foreign = |part: &Part<'_>| matches!(part, Part::Media(media) if !takes(abilities, media.kind).able);
    let needs_words = |said: &Said<'_>| said.role == Role::Tool && said.parts().any(|part| is_foreign(&part));
    if !conversation.iter().any(needs_words) {
        return Cow::Borrowed(conversation);
    }
    let in_words = |part: Part<'a>| if is_foreign(&part) { Part::Text(NOT_TOLD) } else { part };
    let said = |said: &Said<'a>| match said.role {
        Role::Tool => Said { role: said.role, words: Words::Parts(said.parts().map(in_words).collect()) },
        Role::System | Role::User | Role::Assistant => said.clone(),
    };
    conversation.iter().map(said).collect()
}

const NOT_TOLD: &str = "(something that is not text, and that cannot be shown here)";

struct Takes {
    able: bool,
    what: &'static str,
}

fn takes(abilities: PromptAbilities, kind: MediaKind) -> Takes {
    match kind {
        MediaKind::Image => Takes { able: abilities.image, what: "images" },
        MediaKind::Audio => Takes { able: abilities.audio, what: "audio" },
        MediaKind::File => Takes { able: abilities.embedded, what: "files" },
    }
}

/// Refuses what the agent cannot take in a prompt.
pub fn check_abilities(conversation: &[Said<'_>], abilities: PromptAbilities, agent: &str) -> Result<(), Problem> {
    // A tool's results reach the agent by its tool server, which takes every kind.
    let prompted = conversation.iter().enumerate().filter(|(_, said)| said.role != Role::Tool);
    for (at, said) in prompted {
        for part in said.parts() {
            let Part::Media(media) = part else { continue };
            let Takes { able, what } = takes(abilities, media.kind);
            if !able {
                let message = format!("agent `{agent}` takes no {what} in a prompt; leave them out or name another");
                return Err(Problem::invalid(format!("messages[{at}].content"), message));
            }
        }
    }
    Ok(())
}
