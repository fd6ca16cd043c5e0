//! One answer, item after item. What is open is closed before anything else begins.

use std::sync::Arc;

use axum::http::Response;
use bytes::{Bytes, BytesMut};
use gembridge_core::exchange::{AnswerPlace, AnswerSink, ExchangeError, Finish, LoggedHistory, TokenCount};
use gembridge_core::model::{
    AgentName, ClientCall, Content, Message, Outcome, Part, Role, Seq, SessionId, Stop, Timestamp,
};
use serde_json::value::RawValue;

use super::events::{Body, Events, Framing, Template};
use super::object::{AnswerForm, Head, Status, Thoughts};
use crate::dialect::{JSON, StreamEncoder, WholeEncoder};
use crate::identity::RequestId;
use crate::problem::Problem;
use crate::responses::background::Run;
use crate::responses::decode::{CalledTool, Conversation, ToolKind};
use crate::responses::error;
use crate::responses::kept::Keeper;
use crate::responses::response_id::ResponseId;
use crate::responses::stored::typed;
use crate::responses::wire::{CallItem, MessageItem, OutputItem, OutputPart, ReasoningItem};
use crate::sse;

pub(in crate::responses) struct Answer {
    head: Head,
    status: Status,
    items: Vec<OutputItem>,
    open: Option<Open>,
    finish: Finish,
    /// `None`: the answer is wanted whole.
    events: Option<Events>,
    keeper: Option<Keeper>,
}

/// The item that is being written: the body of a JSON string.
struct Open {
    kind: Text,
    id: String,
    escaped: Vec<u8>,
    template: Option<Template>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    Said,
    Refused,
    Thought,
}

impl Answer {
    /// `framing` is that of its events; `None`: the answer is wanted whole.
    pub(in crate::responses) fn new(head: Head, framing: Option<Framing>) -> Self {
        let events = framing.map(Events::new);
        Self { head, status: Status::Queued, items: Vec::new(), open: None, finish: Finish::Stop, events, keeper: None }
    }

    /// An answer that the log of its session has, whole.
    pub(in crate::responses) fn of_log(id: ResponseId, model: &str, logged: &LoggedHistory) -> Self {
        let mut answer = Self::new(Head::of_logged(model, logged.began_at.0 / 1_000), None);
        answer.begin(id);
        let last = logged.messages.last().filter(|last| last.role == Role::Assistant);
        for part in last.into_iter().flat_map(Message::content) {
            if let Content::Text(text) = part {
                answer.write(Text::Said, &text.to_escaped());
            }
        }
        logged.calls.iter().enumerate().for_each(|(number, call)| answer.call(0, number, call));
        match &logged.outcome {
            Some(Outcome::Cancelled) => answer.cancel(),
            Some(Outcome::Interrupted(failure)) => answer.fail(failure.clone().into()),
            Some(Outcome::Finished(_)) | None => {
                let is_cut = logged.outcome == Some(Outcome::Finished(Stop::MaxTokens));
                answer.finish(0, if is_cut { Finish::Length } else { Finish::Stop });
                // How many tokens it took is not known any more.
                answer.status = Status::Ended { finish: answer.finish, tokens: None, at: logged.ended_at.0 / 1_000 };
            }
        }
        answer
    }

    /// The response to a request to which nothing is said: its input is kept, and gone on with later.
    pub(in crate::responses) fn without_words(&mut self) -> Response<axum::body::Body> {
        self.begin(ResponseId { session: SessionId::new(), after: Seq::START, is_stored: false });
        self.conclude(TokenCount::default());
        match self.take() {
            Some(events) => typed(events.into(), sse::CONTENT_TYPE),
            None => typed(self.to_json().into(), JSON),
        }
    }

    /// The response is kept when it is over.
    #[must_use]
    pub(in crate::responses) fn kept_by(self, keeper: Keeper) -> Self {
        Self { keeper: Some(keeper), ..self }
    }

    pub(in crate::responses) fn id(&self) -> &str {
        &self.head.id
    }

    /// The response as it stands.
    pub(in crate::responses) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(&self.head.object(&self.status, &self.items)).expect("strings and numbers always serialise")
    }

    fn begin(&mut self, id: ResponseId) {
        self.name(id);
        self.status = Status::InProgress;
        if !self.head.echo.background {
            self.tell("response.created");
        }
        self.tell("response.in_progress");
    }

    /// It is there, and waits for its agent where it goes on without its client.
    fn name(&mut self, id: ResponseId) {
        if self.head.id.is_empty() {
            self.head.id = id.to_string();
            if self.head.echo.background {
                self.tell("response.created");
                self.tell("response.queued");
            }
        }
    }

    /// It went well, and is kept.
    fn conclude(&mut self, tokens: TokenCount) {
        self.close("completed");
        self.status = Status::Ended { finish: self.finish, tokens: Some(tokens), at: now() };
        self.tell(match self.finish {
            Finish::Length => "response.incomplete",
            Finish::Stop | Finish::ToolCalls | Finish::ContentFilter => "response.completed",
        });
        if let Some(keeper) = self.keeper.take() {
            keeper.keep(&self.head.id, self.said(), self.to_json());
        }
    }

    /// Keeps a response that goes on by itself.
    pub(in crate::responses) fn keep_running(&self, run: Arc<Run>) {
        if let Some(keeper) = &self.keeper {
            keeper.keep_running(&self.head.id, run);
        }
    }

    fn fail(&mut self, problem: Problem) {
        self.close("incomplete");
        self.status = Status::Failed { problem };
        self.tell("response.failed");
    }

    pub(in crate::responses) fn cancel(&mut self) {
        self.close("incomplete");
        self.status = Status::Cancelled;
        self.keeper = None;
    }

    /// The answer as a message of its conversation, with the ids of its calls.
    fn said(&self) -> Conversation {
        let mut said = Conversation::default();
        for item in &self.items {
            match item {
                OutputItem::Message(message) => {
                    said.answer(message.content.iter().map(|part| Part::text(unquoted(part.text()))));
                }
                OutputItem::Reasoning(_) => {}
                OutputItem::FunctionCall(call) | OutputItem::CustomToolCall(call) => {
                    let with = call.arguments.as_deref().or(call.input.as_deref()).unwrap_or_default();
                    said.call(&call.call_id, call.namespace.as_deref(), &call.name, with);
                }
            }
        }
        said.number_calls();
        said
    }

    /// An event that carries the response as it stands.
    fn tell(&mut self, kind: &str) {
        if let Some(events) = &mut self.events {
            events.put(kind, &Body::Response { response: &self.head.object(&self.status, &self.items) });
        }
    }

    fn next_id(&self, prefix: &str) -> String {
        let of_response = self.head.id.strip_prefix(ResponseId::PREFIX).unwrap_or_default();
        format!("{prefix}_{of_response}_{}", self.items.len())
    }

    fn write(&mut self, kind: Text, escaped: &[u8]) {
        if self.open.as_ref().is_none_or(|open| open.kind != kind) {
            self.close("completed");
            self.open(kind);
        }
        let Some(open) = &mut self.open else { return };
        open.escaped.extend_from_slice(escaped);
        if let (Some(events), Some(template)) = (&mut self.events, &open.template) {
            events.piece(template, escaped);
        }
    }

    fn open(&mut self, kind: Text) {
        let Words { item, part, index, text } = kind.words();
        let id = self.next_id(item);
        let at = self.items.len();
        let mut template = None;
        if let Some(events) = &mut self.events {
            let item = self.head.text_item(kind, id.clone(), "in_progress", None);
            events.put("response.output_item.added", &Body::Item { output_index: at, item: &item });
            events.put(&format!("{part}.added"), &kind.part_event(&id, at, &kind.part(quoted(b""))));
            let place = format!("\"item_id\":\"{id}\",\"output_index\":{at},\"{index}\":0");
            let rest = if kind == Text::Said { ",\"logprobs\":[]" } else { "" };
            template = Some(events.template(&format!("{text}.delta"), &place, rest));
        }
        self.open = Some(Open { kind, id, escaped: Vec::new(), template });
    }

    /// Ends the item that is open, if one is.
    fn close(&mut self, status: &'static str) {
        let Some(Open { kind, id, escaped, .. }) = self.open.take() else { return };
        let (written, at) = (quoted(&escaped), self.items.len());
        if let Some(events) = &mut self.events {
            let Words { part, text, .. } = kind.words();
            let (item_id, output_index) = (id.as_str(), at);
            let done = match kind {
                Text::Thought => Body::SummaryText { item_id, output_index, summary_index: 0, text: &written },
                Text::Refused => Body::Refusal { item_id, output_index, content_index: 0, refusal: &written },
                Text::Said => Body::Text { item_id, output_index, content_index: 0, text: &written, logprobs: [] },
            };
            events.put(&format!("{text}.done"), &done);
            events.put(&format!("{part}.done"), &kind.part_event(&id, at, &kind.part(written.clone())));
        }
        let item = self.head.text_item(kind, id, status, Some(written));
        self.push(item);
    }

    /// The item is whole.
    fn push(&mut self, item: OutputItem) {
        if let Some(events) = &mut self.events {
            let output_index = self.items.len();
            events.put("response.output_item.done", &Body::Item { output_index, item: &item });
        }
        self.items.push(item);
    }
}

impl Head {
    /// The item of a text; without its text while it is being written.
    fn text_item(&self, kind: Text, id: String, status: &'static str, text: Option<Box<RawValue>>) -> OutputItem {
        let parts: Vec<OutputPart> = text.map(|text| kind.part(text)).into_iter().collect();
        if kind != Text::Thought {
            return OutputItem::Message(MessageItem { id, status, role: "assistant", content: parts });
        }
        // Thoughts stay in the session. A client that wants something to give back gets the name of the item.
        let encrypted_content = (self.echo.thoughts == Thoughts::Returnable).then(|| id.clone());
        OutputItem::Reasoning(ReasoningItem { id, summary: parts, encrypted_content })
    }
}

/// What the item of a text, its part and its events are called.
struct Words {
    item: &'static str,
    part: &'static str,
    /// The field that numbers the part.
    index: &'static str,
    text: &'static str,
}

impl Text {
    fn words(self) -> Words {
        let (part, index) = match self {
            Self::Said | Self::Refused => ("response.content_part", "content_index"),
            Self::Thought => ("response.reasoning_summary_part", "summary_index"),
        };
        let (item, text) = match self {
            Self::Said => ("msg", "response.output_text"),
            Self::Refused => ("msg", "response.refusal"),
            Self::Thought => ("rs", "response.reasoning_summary_text"),
        };
        Words { item, part, index, text }
    }

    fn part(self, text: Box<RawValue>) -> OutputPart {
        match self {
            Self::Said => OutputPart::OutputText { text, annotations: [], logprobs: [] },
            Self::Refused => OutputPart::Refusal { refusal: text },
            Self::Thought => OutputPart::SummaryText { text },
        }
    }

    fn part_event<'a>(self, item_id: &'a str, output_index: usize, part: &'a OutputPart) -> Body<'a> {
        match self {
            Self::Said | Self::Refused => Body::Part { item_id, output_index, content_index: 0, part },
            Self::Thought => Body::Summary { item_id, output_index, summary_index: 0, part },
        }
    }
}

impl OutputPart {
    fn text(&self) -> &RawValue {
        match self {
            Self::OutputText { text, .. } | Self::Refusal { refusal: text } | Self::SummaryText { text } => text,
        }
    }
}

fn now() -> u64 {
    Timestamp::now().0 / 1_000
}

/// The string whose body this is. What an agent escaped wrongly is written anew.
fn quoted(escaped: &[u8]) -> Box<RawValue> {
    let text = format!("\"{}\"", String::from_utf8_lossy(escaped));
    RawValue::from_string(text).unwrap_or_else(|_| {
        let text = gembridge_core::model::Text::escaped(Bytes::copy_from_slice(escaped));
        serde_json::value::to_raw_value(&text.to_str()).expect("a string always serialises")
    })
}

/// The text of a string.
fn unquoted(text: &RawValue) -> gembridge_core::model::Text {
    let text = text.get();
    let body = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default();
    gembridge_core::model::Text::escaped(Bytes::copy_from_slice(body.as_bytes()))
}

impl StreamEncoder for Answer {
    fn out(&mut self) -> &mut BytesMut {
        &mut self.events.get_or_insert_with(|| Events::new(Framing::Sse)).out
    }

    fn end(&mut self, tokens: TokenCount) {
        self.conclude(tokens);
    }

    fn fail(&mut self, failure: ExchangeError, _: &RequestId) {
        Self::fail(self, error::problem(failure));
    }

    fn keep_alive(&mut self) {
        // Some clients count nothing but events.
        match (&self.status, &mut self.events) {
            (Status::InProgress, _) => self.tell("response.in_progress"),
            (_, Some(_)) if !self.head.id.is_empty() => self.tell("response.queued"),
            // Without a name it cannot be told of yet. A socket has signs of its own.
            (_, Some(events)) if events.framing == Framing::Sse => events.out.extend_from_slice(&sse::KEEP_ALIVE),
            _ => {}
        }
    }
}

impl WholeEncoder for Answer {
    fn encode(&mut self, tokens: TokenCount) -> serde_json::Result<Vec<u8>> {
        self.conclude(tokens);
        Ok(self.to_json())
    }
}

impl AnswerSink for Answer {
    fn accepted(&mut self, _: usize, place: AnswerPlace) {
        if self.head.echo.background {
            self.name(ResponseId::new(place, self.head.echo.store));
        }
    }

    fn begun(&mut self, _: usize, place: AnswerPlace) {
        if matches!(self.status, Status::Queued) {
            self.begin(ResponseId::new(place, self.head.echo.store));
        }
    }

    fn default_model(&mut self, agent: &AgentName) {
        agent.as_str().clone_into(&mut self.head.model);
    }

    fn text(&mut self, _: usize, escaped: &[u8]) {
        self.write(Text::Said, escaped);
    }

    fn thought(&mut self, _: usize, escaped: &[u8]) {
        self.write(Text::Thought, escaped);
    }

    fn refusal(&mut self, _: usize, escaped: &[u8]) {
        // Some clients show no refusals, so that one is told as text where text is expected.
        let kind = match self.head.echo.form {
            AnswerForm::Prose => Text::Said,
            AnswerForm::Data => Text::Refused,
        };
        self.write(kind, escaped);
    }

    fn call(&mut self, _: usize, _: usize, call: &ClientCall) {
        self.close("completed");
        let CalledTool { name, namespace, kind } = self.head.names.called(&call.tool);
        let arguments = String::from_utf8_lossy(&call.arguments.0).into_owned();
        let (prefix, event, with) = match kind {
            ToolKind::Function => ("fc", "response.function_call_arguments", arguments),
            ToolKind::Custom => ("ctc", "response.custom_tool_call_input", custom_input(arguments)),
        };
        let (id, output_index) = (self.next_id(prefix), self.items.len());
        let item = |with: &str, status| {
            let (id, call_id, name, namespace) = (id.clone(), call.id.to_string(), name.clone(), namespace.clone());
            let said = |of: ToolKind| (kind == of).then(|| with.to_owned());
            let (arguments, input) = (said(ToolKind::Function), said(ToolKind::Custom));
            let item = CallItem { id, call_id, name, namespace, arguments, input, status };
            match kind {
                ToolKind::Function => OutputItem::FunctionCall(item),
                ToolKind::Custom => OutputItem::CustomToolCall(item),
            }
        };
        if let Some(events) = &mut self.events {
            let (item_id, with) = (id.as_str(), with.as_str());
            events.put("response.output_item.added", &Body::Item { output_index, item: &item("", "in_progress") });
            events.put(&format!("{event}.delta"), &Body::Delta { item_id, output_index, delta: with });
            let done = match kind {
                ToolKind::Function => Body::Arguments { item_id, output_index, name: &name, arguments: with },
                ToolKind::Custom => Body::Input { item_id, output_index, input: with },
            };
            events.put(&format!("{event}.done"), &done);
        }
        let item = item(&with, "completed");
        self.push(item);
    }

    fn finish(&mut self, _: usize, finish: Finish) {
        self.close(if finish == Finish::Length { "incomplete" } else { "completed" });
        self.finish = finish;
    }
}

/// The text that a custom tool is called with, out of the one argument that the agent knows.
fn custom_input(arguments: String) -> String {
    #[derive(serde::Deserialize)]
    struct Arguments {
        input: String,
    }
    serde_json::from_str(&arguments).map_or(arguments, |Arguments { input }| input)
}
