//! The messages of a request in the core's words. Results of calls, which stand in a user's message, are messages of their own
//! there.

use gembridge_core::exchange::{CallRef, FollowUp};
use gembridge_core::model::{CallName, Content, Message, Part, ReturnOutcome, Role};

use super::ThreadWish;
use super::blocks::{content_of, contents};
use crate::dialect::{OpenCalls, Source, brief};
use crate::json::OneOrMany;
use crate::messages::wire::{self, Block, CreateRequest};
use crate::problem::Problem;

/// What was said, and what of it goes on with calls.
#[derive(Debug, Default)]
pub struct Conversation {
    pub messages: Vec<Message>,
    /// Where each of them stands in the request; `None`: it is what `system` says.
    pub places: Vec<Option<usize>>,
    pub follow_up: Option<FollowUp>,
}

/// A result of a call on its way to the turn that waits for it.
struct Given {
    /// Which of the messages it is.
    at: usize,
    call: String,
    outcome: ReturnOutcome,
    place: String,
}

/// What is known while the messages are read.
#[derive(Default)]
struct Reader<'r> {
    said: Conversation,
    /// The calls of the last answer: their ids and names.
    calls: Vec<(&'r str, CallName)>,
    /// What was given back since.
    given: Vec<Given>,
}

/// The conversation of a request that was read from `body`.
pub fn conversation(
    request: &CreateRequest<'_>,
    thread: Option<&ThreadWish>,
    body: Source<'_>,
) -> Result<Conversation, Problem> {
    let messages = request.messages.as_ref().map_or(&[][..], |messages| &messages.0);
    if messages.is_empty() {
        return Err(Problem::invalid("messages", "`messages` is empty; say at least one thing"));
    }
    let mut reader = Reader::default();
    if let Some(system) = &request.system {
        reader.system(system, body)?;
    }
    for (at, message) in messages.iter().enumerate() {
        reader.message(at, message, body)?;
    }
    let goes_on = matches!(thread, Some(ThreadWish::Continue(_)));
    reader.said.follow_up = reader.follow_up(goes_on)?;
    Ok(reader.said)
}

/// A block by which a client counts what it costs. It differs from request to request, and says nothing to an agent.
const BILLING: &str = "x-anthropic-billing-header:";

impl<'r> Reader<'r> {
    fn push(&mut self, at: Option<usize>, role: Role, parts: Vec<Part>) {
        self.said.messages.push(Message { role, parts });
        self.said.places.push(at);
    }

    fn system(&mut self, system: &wire::Content<'_>, body: Source<'_>) -> Result<(), Problem> {
        let mut said = contents(system, body, "system")?;
        if matches!(said.first(), Some(Content::Text(text)) if text.to_str().starts_with(BILLING)) {
            said.remove(0);
        }
        said.retain(|content| !content.is_empty());
        if !said.is_empty() {
            self.push(None, Role::System, said.into_iter().map(Part::Content).collect());
        }
        Ok(())
    }

    fn message(&mut self, at: usize, message: &'r wire::Message<'_>, body: Source<'_>) -> Result<(), Problem> {
        let place = format!("messages[{at}].content");
        let Some(content) = &message.content else {
            return Err(Problem::invalid(place, "a message has no `content`; give it a string or blocks"));
        };
        match message.role.as_deref() {
            Some("user") => self.user(at, content, body, &place),
            Some("assistant") => self.assistant(at, content, body, &place),
            Some("system") => {
                let said = contents(content, body, &place)?;
                self.push(Some(at), Role::System, said.into_iter().map(Part::Content).collect());
                Ok(())
            }
            other => {
                let other = brief(other.unwrap_or_default());
                let message = format!("`{other}` is no role of a message; use `user`, `assistant` or `system`");
                Err(Problem::invalid(format!("messages[{at}].role"), message))
            }
        }
    }

    fn user(&mut self, at: usize, content: &wire::Content<'_>, body: Source<'_>, place: &str) -> Result<(), Problem> {
        let mut parts = Vec::new();
        match content {
            OneOrMany::One(text) => parts.push(Part::text(body.text(text))),
            OneOrMany::Many(blocks) => {
                for (number, block) in blocks.iter().enumerate() {
                    let place = || format!("{place}[{number}]");
                    if block.kind.as_deref() == Some("tool_result") {
                        self.result(at, block, body, place())?;
                    } else {
                        parts.extend(content_of(block, body, place)?.map(Part::Content));
                    }
                }
            }
        }
        if !parts.is_empty() {
            self.push(Some(at), Role::User, parts);
        }
        Ok(())
    }

    /// A result of a call, as a message of its own.
    fn result(&mut self, at: usize, block: &Block<'_>, body: Source<'_>, place: String) -> Result<(), Problem> {
        let Some(id) = block.tool_use_id.as_deref() else {
            let message = "a result has no `tool_use_id`; say which call it is of";
            return Err(Problem::invalid(format!("{place}.tool_use_id"), message));
        };
        let name = self.calls.iter().find(|(known, _)| *known == id).map(|(_, name)| name.clone());
        let mut parts: Vec<Part> = name.map(Part::ResultOf).into_iter().collect();
        if let Some(content) = &block.content {
            parts.extend(contents(content, body, &format!("{place}.content"))?.into_iter().map(Part::Content));
        }
        let outcome = if block.is_error == Some(true) { ReturnOutcome::Failed } else { ReturnOutcome::Done };
        self.given.push(Given { at: self.said.messages.len(), call: id.to_owned(), outcome, place });
        self.push(Some(at), Role::Tool, parts);
        Ok(())
    }

    fn assistant(
        &mut self,
        at: usize,
        content: &'r wire::Content<'_>,
        body: Source<'_>,
        place: &str,
    ) -> Result<(), Problem> {
        self.given.clear();
        self.calls = calls(content);
        let mut parts = Vec::new();
        match content {
            OneOrMany::One(text) => parts.push(Part::text(body.text(text))),
            OneOrMany::Many(blocks) => {
                let mut names = self.calls.iter().map(|(_, name)| name);
                for (number, block) in blocks.iter().enumerate() {
                    if block.kind.as_deref() != Some("tool_use") {
                        let said = content_of(block, body, || format!("{place}[{number}]"))?;
                        parts.extend(said.filter(|said| !said.is_empty()).map(Part::Content));
                    } else if let Some(name) = names.next() {
                        let arguments = block.input.map_or_else(|| "{}".into(), |input| body.text(input.text));
                        parts.push(Part::Call { call: name.clone(), arguments });
                    }
                }
            }
        }
        self.push(Some(at), Role::Assistant, parts);
        Ok(())
    }

    /// Only what stands after the last answer counts: what was called and given back before is history.
    fn follow_up(&self, goes_on: bool) -> Result<Option<FollowUp>, Problem> {
        let messages = &self.said.messages;
        let last = messages.iter().rposition(|message| message.role == Role::Assistant);
        let mut open = OpenCalls::new(self.calls.iter().map(|(id, _)| CallRef::Id((*id).to_owned())));
        let after = last.map_or(0, |last| last + 1);
        let mut given = self.given.iter().peekable();
        for (at, message) in messages.iter().enumerate().skip(after) {
            match given.next_if(|given| given.at == at) {
                // The answer that called is not in this request.
                Some(Given { call, outcome, .. }) if goes_on => {
                    open.known_result(CallRef::Id(call.clone()), message, *outcome);
                }
                Some(Given { call, outcome, place, .. }) => {
                    open.result(CallRef::Id(call.clone()), message, *outcome, || format!("{place}.tool_use_id"))?;
                }
                // What the system says before anything else is no part of what is new.
                None if last.is_none() && !goes_on => {}
                None => open.said(message),
            }
        }
        Ok(open.follow_up())
    }
}

fn calls<'r>(content: &'r wire::Content<'_>) -> Vec<(&'r str, CallName)> {
    let OneOrMany::Many(blocks) = content else { return Vec::new() };
    let calls: Vec<&Block<'_>> = blocks.iter().filter(|block| block.kind.as_deref() == Some("tool_use")).collect();
    let several = calls.len() > 1;
    let call = |(number, block): (usize, &&'r Block<'_>)| {
        let tool = block.name.as_deref().unwrap_or_default();
        let name = CallName { tool: tool.into(), number: several.then_some(number + 1) };
        (block.id.as_deref().unwrap_or_default(), name)
    };
    calls.iter().enumerate().map(call).collect()
}
