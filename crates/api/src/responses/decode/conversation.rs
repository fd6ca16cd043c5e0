//! The items of a request as messages. What the agent said in one answer is several items here, and one message in the
//! core: text, then calls. Texts stay slices of the request's body where they can.

use std::collections::HashMap;

use gembridge_core::exchange::CallRef;
use gembridge_core::model::{CallName, Content, Message, Part, Role, Text};

use super::tools::agent_name;
use crate::dialect::{Source, brief, media};
use crate::json::OneOrMany;
use crate::problem::Problem;
use crate::responses::compaction;
use crate::responses::response_id::ResponseId;
use crate::responses::wire::{self, CreateRequest, Item};

/// As many as the `input` of one request may have.
const MOST_MESSAGES: usize = 10_000;

/// The input of one request.
#[derive(Clone, Debug, Default)]
pub(in crate::responses) struct Conversation {
    pub messages: Vec<Message>,
    /// The calls that the messages make, by their ids.
    pub calls: Vec<Call>,
    /// The messages that are results, and of which call.
    pub results: Vec<CallResult>,
}

#[derive(Clone, Debug)]
pub(in crate::responses) struct Call {
    pub id: String,
    pub name: CallName,
    /// The message that makes it.
    pub message: usize,
}

#[derive(Clone, Debug)]
pub(in crate::responses) struct CallResult {
    pub id: String,
    pub message: usize,
    /// Where it stands in the request.
    pub place: String,
}

impl CallResult {
    pub(in crate::responses) fn call(&self) -> CallRef {
        CallRef::Id(self.id.clone())
    }
}

pub(super) fn items<'r, 'a>(request: &'r CreateRequest<'a>) -> &'r [Item<'a>] {
    match &request.input {
        Some(OneOrMany::Many(items)) => items,
        Some(OneOrMany::One(_)) | None => &[],
    }
}

/// The input of a request that was read from `body`. Instructions are not part of it: each request has its own.
pub(in crate::responses) fn conversation(
    request: &CreateRequest<'_>,
    body: Source<'_>,
) -> Result<Conversation, Problem> {
    let mut reader = Reader { conversation: Conversation::default(), body };
    match &request.input {
        Some(OneOrMany::One(text)) => reader.say(Role::User, vec![Part::text(body.text(text))]),
        Some(OneOrMany::Many(items)) => {
            let known = items.iter().rposition(|item| referenced(item).is_some()).map_or(0, |at| at + 1);
            for (at, item) in items.iter().enumerate().skip(known) {
                reader.item(item, &format!("input[{at}]"))?;
            }
        }
        None => return Err(Problem::invalid("input", "`input` is missing; say at least one thing")),
    }
    let mut conversation = reader.conversation;
    conversation.number_calls();
    Ok(conversation)
}

/// The response that an item names by reference. A reference stands for everything up to the end of that response: clients that refer
/// to items do so for all that was said in it.
fn referenced(item: &Item<'_>) -> Option<ResponseId> {
    let id = item.id.as_deref().filter(|_| item.kind.as_deref() == Some("item_reference"))?;
    let (of, _) = id.split_once('_').filter(|(kind, _)| *kind != THOUGHT)?.1.rsplit_once('_')?;
    format!("{}{of}", ResponseId::PREFIX).parse().ok()
}

/// The response up to whose end the request repeats nothing, where it names one by the items of it.
pub(super) fn referenced_response(request: &CreateRequest<'_>) -> Option<String> {
    items(request).iter().rev().find_map(referenced).map(|id| id.to_string())
}

/// What the ids of thoughts begin with. They stay in the session.
const THOUGHT: &str = "rs";

struct Reader<'b> {
    conversation: Conversation,
    body: Source<'b>,
}

impl Reader<'_> {
    fn item(&mut self, item: &Item<'_>, place: &str) -> Result<(), Problem> {
        match item.kind.as_deref().unwrap_or("message") {
            "message" => self.message(item, place),
            "function_call" => self.call(item, item.arguments.as_deref(), place),
            "custom_tool_call" => self.call(item, item.input.as_deref(), place),
            "function_call_output" | "custom_tool_call_output" => self.result(item, place),
            "compaction" => {
                let kept = compaction::open(item.encrypted_content.as_deref().unwrap_or_default());
                let message = "this compaction was not made here; send the items themselves";
                let kept = kept.ok_or_else(|| Problem::invalid(format!("{place}.encrypted_content"), message))?;
                self.conversation.messages.extend(kept);
                Ok(())
            }
            // Thoughts stay in the session; tools were read with the others.
            "reasoning" | "additional_tools" | "compaction_trigger" | "configuration_update" => Ok(()),
            "item_reference" if item.id.as_deref().is_some_and(|id| id.starts_with("rs_")) => Ok(()),
            "item_reference" => {
                let message =
                    "no response of this gateway has the item; send the item itself, or `previous_response_id`";
                Err(Problem::invalid(format!("{place}.id"), message))
            }
            other => {
                let message = format!("`{}` is no type of item here; leave it out", brief(other));
                Err(Problem::invalid(format!("{place}.type"), message))
            }
        }
    }

    fn message(&mut self, item: &Item<'_>, place: &str) -> Result<(), Problem> {
        let role = match item.role.as_deref() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("system" | "developer") => Role::System,
            other => {
                let message = format!(
                    "`{}` is no role of a message; use `user`, `assistant`, `system` or `developer`",
                    brief(other.unwrap_or_default())
                );
                return Err(Problem::invalid(format!("{place}.role"), message));
            }
        };
        let Some(content) = &item.content else {
            let message = "a message has no `content`; give it a string or parts";
            return Err(Problem::invalid(format!("{place}.content"), message));
        };
        let parts = self.parts(content, &format!("{place}.content"))?;
        self.say(role, parts);
        Ok(())
    }

    fn say(&mut self, role: Role, parts: Vec<Part>) {
        match role {
            Role::Assistant => self.conversation.answer(parts),
            role => self.conversation.messages.push(Message { role, parts }),
        }
    }

    fn call(&mut self, item: &Item<'_>, arguments: Option<&str>, place: &str) -> Result<(), Problem> {
        let id = call_id(item, place)?;
        let name = item.name.as_deref().unwrap_or_default();
        self.conversation.call(&id, item.namespace.as_deref(), name, self.body.text(arguments.unwrap_or_default()));
        Ok(())
    }

    fn result(&mut self, item: &Item<'_>, place: &str) -> Result<(), Problem> {
        let id = call_id(item, place)?;
        let Some(output) = &item.output else {
            let message = "the result of a call has no `output`; give it a string or parts";
            return Err(Problem::invalid(format!("{place}.output"), message));
        };
        let parts = self.parts(output, &format!("{place}.output"))?;
        self.say(Role::Tool, parts);
        let message = self.conversation.messages.len() - 1;
        self.conversation.results.push(CallResult { id, message, place: format!("{place}.call_id") });
        Ok(())
    }

    fn parts(&self, content: &wire::Content<'_>, place: &str) -> Result<Vec<Part>, Problem> {
        match content {
            OneOrMany::One(text) => Ok(vec![Part::text(self.body.text(text))]),
            OneOrMany::Many(parts) => {
                let part = |(at, part)| self.part(part, &format!("{place}[{at}]")).map(Part::Content);
                parts.iter().enumerate().map(part).collect()
            }
        }
    }

    fn part(&self, part: &wire::Part<'_>, place: &str) -> Result<Content, Problem> {
        let missing = |field: &str| Problem::invalid(format!("{place}.{field}"), format!("a part has no `{field}`"));
        match part.kind.as_deref() {
            Some("input_text" | "output_text" | "text" | "summary_text") => {
                let text = part.text.as_deref().ok_or_else(|| missing("text"))?;
                Ok(Content::Text(self.body.text(text)))
            }
            Some("refusal") => {
                let text = part.refusal.as_deref().ok_or_else(|| missing("refusal"))?;
                Ok(Content::Text(self.body.text(text)))
            }
            Some("input_image") => {
                no_file_id(part, place)?;
                let url = part.image_url.as_deref().ok_or_else(|| missing("image_url"))?;
                media::image_of_uri(url, self.body, &format!("{place}.image_url"))
            }
            Some("input_file") => {
                no_file_id(part, place)?;
                let place = format!("{place}.file_data");
                let uri = part.file_data.as_deref().and_then(media::data_uri).ok_or_else(|| {
                    let message = "a file must come as `file_data`, a data URI (`data:application/pdf;base64,…`)";
                    Problem::invalid(&*place, message)
                })?;
                media::file(part.filename.as_deref().unwrap_or_default(), &uri, self.body, &place)
            }
            other => {
                let kind = brief(other.unwrap_or_default());
                let message = format!("`{kind}` is no type of part; use `input_text`, `input_image` or `input_file`");
                Err(Problem::invalid(format!("{place}.type"), message))
            }
        }
    }
}

fn no_file_id(part: &wire::Part<'_>, place: &str) -> Result<(), Problem> {
    match part.file_id {
        Some(_) => Err(Problem::invalid(format!("{place}.file_id"), "no files are kept here; send the data itself")),
        None => Ok(()),
    }
}

fn call_id(item: &Item<'_>, place: &str) -> Result<String, Problem> {
    let id = item.call_id.as_deref().filter(|id| !id.is_empty());
    let missing = || Problem::invalid(format!("{place}.call_id"), "a call has no `call_id`; say which one it is");
    id.map(str::to_owned).ok_or_else(missing)
}

impl Conversation {
    /// What the agent says goes on where it said something before: one answer is one message.
    pub(in crate::responses) fn answer(&mut self, parts: impl IntoIterator<Item = Part>) {
        match self.messages.last_mut() {
            Some(last) if last.role == Role::Assistant => last.parts.extend(parts),
            _ => self.messages.push(Message { role: Role::Assistant, parts: parts.into_iter().collect() }),
        }
    }

    pub(in crate::responses) fn call(
        &mut self,
        id: &str,
        namespace: Option<&str>,
        name: &str,
        arguments: impl Into<Text>,
    ) {
        let name = CallName { tool: agent_name(namespace, name).into(), number: None };
        self.answer([Part::Call { call: name.clone(), arguments: arguments.into() }]);
        self.calls.push(Call { id: id.to_owned(), name, message: self.messages.len() - 1 });
    }

    /// Calls that were made at once have numbers, and results name the call that they are of.
    pub(in crate::responses) fn number_calls(&mut self) {
        for at_once in self.calls.chunk_by_mut(|one, next| one.message == next.message).filter(|calls| calls.len() > 1)
        {
            let made = self.messages[at_once[0].message].parts.iter_mut().filter_map(|part| match part {
                Part::Call { call, .. } => Some(call),
                Part::Content(_) | Part::ResultOf(_) => None,
            });
            for (number, (call, made)) in at_once.iter_mut().zip(made).enumerate() {
                call.name.number = Some(number + 1);
                made.number = Some(number + 1);
            }
        }
        name_results(&mut self.messages, &self.calls, &self.results);
    }

    /// The same with bytes of its own.
    #[must_use]
    pub(in crate::responses) fn detached(self) -> Self {
        Self { messages: self.messages.iter().map(Message::detached).collect(), ..self }
    }

    /// About the memory that it takes, once it is detached.
    pub(in crate::responses) fn weight(&self) -> usize {
        let parts = |message: &Message| message.parts.len() * size_of::<Part>();
        let messages = self.messages.iter().map(|message| size_of::<Message>() + parts(message) + message.len());
        let calls = self.calls.iter().map(|call| size_of::<Call>() + call.id.len() + call.name.tool.len());
        let results = self.results.iter().map(|result| size_of::<CallResult>() + result.id.len());
        messages.chain(calls).chain(results).sum()
    }

    /// A conversation is bounded as one request is, also where it grew over several.
    pub(in crate::responses) fn check_length(&self, field: &str) -> Result<(), Problem> {
        let messages = self.messages.len();
        if messages <= MOST_MESSAGES {
            return Ok(());
        }
        let message = format!("the conversation has {messages} messages; {MOST_MESSAGES} is the most, begin another");
        Err(Problem::invalid(field, message))
    }

    /// Puts what was said before in front of it.
    pub(in crate::responses) fn after(self, mut past: Conversation) -> Self {
        let offset = past.messages.len();
        let moved = |result: CallResult| CallResult { message: result.message + offset, ..result };
        let results: Vec<CallResult> = self.results.into_iter().map(moved).collect();
        past.messages.extend(self.messages);
        name_results(&mut past.messages, &past.calls, &results);
        past.results.extend(results);
        past.calls.extend(self.calls.into_iter().map(|call| Call { message: call.message + offset, ..call }));
        past
    }
}

/// Puts in front of each result which call it is of, where that is known and not said yet.
fn name_results(messages: &mut [Message], calls: &[Call], results: &[CallResult]) {
    let names: HashMap<&str, &CallName> = calls.iter().map(|call| (call.id.as_str(), &call.name)).collect();
    for result in results {
        let parts = &mut messages[result.message].parts;
        if let (false, Some(name)) = (matches!(parts.first(), Some(Part::ResultOf(_))), names.get(result.id.as_str())) {
            parts.insert(0, Part::ResultOf((*name).clone()));
        }
    }
}
