//! The messages of a request in the core's words, and which call each result of a tool belongs to.
//!
//! Most clients forget the ids of calls. A result belongs to the call with its id; else to the next call of the tool that it
//! names; else to the next call without a result.

use gembridge_core::exchange::{CallRef, FollowUp};
use gembridge_core::model::{CallId, CallName, Content, Message, Part, ReturnOutcome, Role};

use crate::dialect::media::{self, data_uri};
use crate::dialect::{OpenCalls, Source, brief};
use crate::ollama::wire::{self, Ask};
use crate::problem::Problem;

/// What was said, and what of it goes on with calls.
#[derive(Debug)]
pub struct Conversation {
    pub messages: Vec<Message>,
    pub follow_up: Option<FollowUp>,
}

/// A call without a result yet.
struct Open<'a> {
    id: Option<&'a str>,
    name: CallName,
}

impl Open<'_> {
    /// How the core finds the call: by its id, where that is one of ours.
    fn reference(&self) -> CallRef {
        reference(self.id, &self.name.tool)
    }
}

fn reference(id: Option<&str>, tool: &str) -> CallRef {
    match id.filter(|id| id.parse::<CallId>().is_ok()) {
        Some(id) => CallRef::Id(id.to_owned()),
        None => CallRef::Tool(tool.to_owned()),
    }
}

/// The conversation of a chat that was read from `body`.
pub fn conversation(request: &Ask<'_>, body: Source<'_>) -> Result<Conversation, Problem> {
    let said = request.messages.as_ref().map_or(&[][..], |messages| &messages.0);
    let mut messages = Vec::with_capacity(said.len());
    let mut results: Vec<Option<CallRef>> = Vec::with_capacity(said.len());
    let mut open: Vec<Open<'_>> = Vec::new();
    for (at, message) in said.iter().enumerate() {
        let role = role(at, message)?;
        let mut parts = Vec::with_capacity(1);
        let mut result = None;
        match role {
            Role::Tool => {
                let answered = close(&mut open, message);
                result = answered
                    .as_ref()
                    .map(|call| reference(message.tool_call_id.as_deref().or(call.id), &call.name.tool));
                parts.extend(answered.map(|call| Part::ResultOf(call.name)));
            }
            Role::Assistant => open = calls(message),
            Role::System | Role::User => {}
        }
        let called = message.tool_calls.as_ref().is_some_and(|calls| !calls.0.is_empty());
        if let Some(text) = message.content.as_deref().filter(|text| !(text.is_empty() && called)) {
            parts.push(Part::text(body.text(text)));
        }
        for (number, image) in message.images.iter().flat_map(|images| &images.0).enumerate() {
            parts.push(Part::Content(picture(image, body, &format!("messages[{at}].images[{number}]"))?));
        }
        if role == Role::Assistant {
            parts.extend(call_parts(message, &open, body));
        }
        if parts.is_empty() {
            parts.push(Part::text(""));
        }
        messages.push(Message { role, parts });
        results.push(result);
    }
    let follow_up = follow_up(&open, &messages, results);
    Ok(Conversation { messages, follow_up })
}

/// The conversation of a generation: what the system says, and one prompt.
pub fn generation(request: &Ask<'_>, body: Source<'_>) -> Result<Conversation, Problem> {
    let mut messages = Vec::with_capacity(2);
    if let Some(system) = request.system.as_deref().filter(|system| !system.is_empty()) {
        messages.push(Message::text(Role::System, body.text(system)));
    }
    let mut parts = Vec::with_capacity(1);
    parts.extend(request.prompt.as_deref().map(|prompt| Part::text(body.text(prompt))));
    for (number, image) in request.images.iter().flat_map(|images| &images.0).enumerate() {
        parts.push(Part::Content(picture(image, body, &format!("images[{number}]"))?));
    }
    messages.push(Message { role: Role::User, parts });
    Ok(Conversation { messages, follow_up: None })
}

fn role(at: usize, message: &wire::Message<'_>) -> Result<Role, Problem> {
    let role = message.role.as_deref().unwrap_or_default();
    let known = [("system", Role::System), ("user", Role::User), ("assistant", Role::Assistant), ("tool", Role::Tool)];
    let found = known.iter().find(|(name, _)| role.eq_ignore_ascii_case(name)).map(|(_, role)| *role);
    found.ok_or_else(|| {
        let message = format!("`{}` is no role of a message; use `system`, `user`, `assistant` or `tool`", brief(role));
        Problem::invalid(format!("messages[{at}].role"), message)
    })
}

fn calls<'a>(message: &'a wire::Message<'_>) -> Vec<Open<'a>> {
    let calls = message.tool_calls.as_ref().map_or(&[][..], |calls| &calls.0);
    let several = calls.len() > 1;
    let open = |(number, call): (usize, &'a wire::Call<'_>)| {
        let tool = call.function.as_ref().and_then(|function| function.name.as_deref()).unwrap_or_default();
        let name = CallName { tool: tool.into(), number: several.then_some(number + 1) };
        Open { id: call.id.as_deref(), name }
    };
    calls.iter().enumerate().map(open).collect()
}

fn call_parts(message: &wire::Message<'_>, open: &[Open<'_>], body: Source<'_>) -> Vec<Part> {
    let calls = message.tool_calls.iter().flat_map(|calls| &calls.0);
    let arguments =
        |call: &wire::Call<'_>| call.function.as_ref()?.arguments.map(|arguments| body.text(arguments.text));
    let part = |(call, open): (&wire::Call<'_>, &Open<'_>)| Part::Call {
        call: open.name.clone(),
        arguments: arguments(call).unwrap_or_else(|| "{}".into()),
    };
    calls.zip(open).map(part).collect()
}

/// The call that this message is the result of.
fn close<'a>(open: &mut Vec<Open<'a>>, result: &wire::Message<'_>) -> Option<Open<'a>> {
    let by_id = || open.iter().position(|call| call.id.is_some() && call.id == result.tool_call_id.as_deref());
    let by_name = || open.iter().position(|call| result.tool_name.as_deref() == Some(&*call.name.tool));
    let next = || (!open.is_empty()).then_some(0);
    by_id().or_else(by_name).or_else(next).map(|at| open.remove(at))
}

/// Only what stands after the last answer counts: what was called and given back before is history.
fn follow_up(unanswered: &[Open<'_>], messages: &[Message], results: Vec<Option<CallRef>>) -> Option<FollowUp> {
    let last = messages.iter().rposition(|message| message.role == Role::Assistant)?;
    let mut open = OpenCalls::new(unanswered.iter().map(Open::reference));
    for (message, result) in messages.iter().zip(results).skip(last + 1) {
        match result {
            Some(call) => open.known_result(call, message, ReturnOutcome::Done),
            None => open.said(message),
        }
    }
    open.follow_up()
}

/// Base64 without a type, which its first bytes tell; or with one.
fn picture(image: &str, body: Source<'_>, place: &str) -> Result<Content, Problem> {
    if let Some(uri) = data_uri(image) {
        return media::image(uri.mime, uri.data, body, place);
    }
    let starts = [("/9j/", "image/jpeg"), ("R0lG", "image/gif"), ("UklG", "image/webp")];
    let kind = starts.iter().find(|(start, _)| image.starts_with(start)).map_or("image/png", |(_, kind)| *kind);
    media::image(kind, image, body, place)
}
