//! The messages of a request in the core's words. Their texts stay slices of the request's body where they can.

use gembridge_core::model::{CallName, Content, Message, Part, PromptAbilities, Role};

use super::media;
use crate::dialect::{self, Source, brief};
use crate::openai::wire::{self, ChatRequest, OneOrMany, ToolCall};
use crate::problem::Problem;

/// The conversation of a request that was read from `body`.
pub fn conversation(request: &ChatRequest<'_>, body: Source<'_>) -> Result<Vec<Message>, Problem> {
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
        conversation.push(message_of(at, message, calling, body)?);
    }
    if conversation.last().is_some_and(dialect::media::says_nothing) {
        let param = format!("messages[{}].content", messages.len() - 1);
        return Err(Problem::invalid(param, "the newest message is empty; say something in it"));
    }
    Ok(conversation)
}

/// `calling` is the nearest message with calls.
fn message_of(
    at: usize,
    message: &wire::Message<'_>,
    calling: Option<&wire::Message<'_>>,
    body: Source<'_>,
) -> Result<Message, Problem> {
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
    let called = calls(at, message, body)?;
    let content = message.content.as_ref();
    let parts = match (content, role) {
        (None, Role::Assistant) if called.is_empty() => {
            vec![Part::text(body.text(message.refusal.as_deref().unwrap_or_default()))]
        }
        (None, Role::System | Role::User | Role::Tool) => {
            let param = format!("messages[{at}].content");
            return Err(Problem::invalid(param, "a message has no `content`; give it a string or parts"));
        }
        (content, _) => {
            let mut parts = Vec::with_capacity(1);
            if role == Role::Tool {
                parts.extend(answered(calling, message).map(Part::ResultOf));
            }
            if let Some(content) = content {
                add_parts(&mut parts, at, content, body)?;
            }
            if !called.is_empty() {
                parts.retain(|part| !matches!(part, Part::Content(Content::Text(text)) if text.is_empty()));
                parts.extend(called);
            }
            parts
        }
    };
    Ok(Message { role, parts })
}

/// The calls that the message at this place makes.
fn calls(at: usize, message: &wire::Message<'_>, body: Source<'_>) -> Result<Vec<Part>, Problem> {
    let calls = message.tool_calls.as_ref().map_or(&[][..], |calls| &calls.0);
    let several = calls.len() > 1;
    let part = |(number, call): (usize, &ToolCall<'_>)| {
        let Some(Called { tool, arguments }) = called(call) else {
            let param = format!("messages[{at}].tool_calls[{number}]");
            return Err(Problem::invalid(param, "a call has neither `function` nor `custom`; say what was called"));
        };
        let call = CallName { tool: tool.into(), number: several.then_some(number + 1) };
        Ok(Part::Call { call, arguments: body.text(arguments) })
    };
    let mut parts = calls.iter().enumerate().map(part).collect::<Result<Vec<_>, _>>()?;
    if let Some(function) = &message.function_call {
        let Called { tool, arguments } = Called::new(function.name.as_deref(), function.arguments.as_deref());
        let call = CallName { tool: tool.into(), number: None };
        parts.push(Part::Call { call, arguments: body.text(arguments) });
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
fn answered(calls: Option<&wire::Message<'_>>, result: &wire::Message<'_>) -> Option<CallName> {
    if let (None, Some(name)) = (&result.tool_call_id, &result.name) {
        return Some(CallName { tool: (&**name).into(), number: None });
    }
    let calls = &calls?.tool_calls.as_ref()?.0;
    let at = calls.iter().position(|call| call.id.is_some() && call.id == result.tool_call_id)?;
    let tool = called(&calls[at])?.tool;
    Some(CallName { tool: tool.into(), number: (calls.len() > 1).then_some(at + 1) })
}

fn add_parts(parts: &mut Vec<Part>, at: usize, content: &wire::Content<'_>, body: Source<'_>) -> Result<(), Problem> {
    match content {
        OneOrMany::One(text) => parts.push(Part::text(body.text(text))),
        OneOrMany::Many(many) => {
            for (number, part) in many.iter().enumerate() {
                let place = || format!("messages[{at}].content[{number}]");
                parts.push(Part::Content(media::content(part, body, place)?));
            }
        }
    }
    Ok(())
}

/// Refuses what the agent cannot take in a prompt.
pub fn check_abilities(conversation: &[Message], abilities: PromptAbilities, agent: &str) -> Result<(), Problem> {
    dialect::media::check_abilities(conversation, abilities, agent, |at| format!("messages[{at}].content"))
}
