//! One answer, item after item. What is open is closed before anything else begins.

use bytes::{Bytes, BytesMut};
use gembridge_core::exchange::{AnswerPlace, AnswerSink, ExchangeError, Finish, TokenCount};
use gembridge_core::model::{AgentName, ClientCall, Part, Timestamp};
use serde_json::value::RawValue;

use super::events::{Body, Events, Framing, Template};
use super::object::{AnswerForm, Head, Status, Thoughts};
use crate::dialect::StreamEncoder;
use crate::identity::RequestId;
use crate::problem::Problem;
use crate::responses::decode::{CalledTool, Conversation, ToolKind};
use crate::responses::error;
use crate::responses::keeper::{Keeper, Over};
use crate::responses::kept::Stage;
use crate::responses::response_id::ResponseId;
use crate::responses::wire::{
    CustomCallItem, FunctionCallItem, MessageItem, OutputItem, OutputPart, ReasoningItem, SummaryPart,
};
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
    pub(in crate::responses) fn whole(head: Head) -> Self {
        Self::new(head, None)
    }

    pub(in crate::responses) fn in_events(head: Head, framing: Framing) -> Self {
        Self::new(head, Some(Events::new(framing)))
    }

    fn new(head: Head, events: Option<Events>) -> Self {
        Self { head, status: Status::Queued, items: Vec::new(), open: None, finish: Finish::Stop, events, keeper: None }
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
    pub(in crate::responses) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(&self.head.object(&self.status, &self.items)).expect("strings and numbers always serialise")
    }

    pub(in crate::responses) fn begin(&mut self, id: ResponseId) {
        self.head.id = id.to_string();
        self.status = if self.head.echo.background { Status::Queued } else { Status::InProgress };
        self.tell("response.created");
        if self.head.echo.background {
            self.tell("response.queued");
        }
        self.status = Status::InProgress;
        self.tell("response.in_progress");
    }

    /// Shows that the response lives: some clients count nothing but events.
    pub(in crate::responses) fn sign_of_life(&mut self) {
        if matches!(self.status, Status::InProgress) {
            self.tell("response.in_progress");
        }
    }

    pub(in crate::responses) fn end(&mut self, tokens: TokenCount) {
        self.close("completed");
        self.status = Status::Ended { finish: self.finish, tokens: Some(tokens), at: now() };
        self.tell(match self.finish {
            Finish::Length => "response.incomplete",
            Finish::Stop | Finish::ToolCalls | Finish::ContentFilter => "response.completed",
        });
    }

    /// The same for one that ended some time ago, and whose tokens are not known any more.
    pub(in crate::responses) fn end_as_logged(&mut self, at: u64) {
        self.close("completed");
        self.status = Status::Ended { finish: self.finish, tokens: None, at };
    }

    /// What is to be kept of a response that is over.
    pub(in crate::responses) fn over(&mut self) -> Option<Over> {
        Some(Over { keeper: self.keeper.take()?, id: self.head.id.clone(), answered: self.said() })
    }

    /// Keeps the response as it is.
    pub(in crate::responses) fn keep(&mut self) {
        if let Some(over) = self.over() {
            over.keep(Stage::Over(self.encode().into()));
        }
    }

    /// Keeps a response that goes on by itself.
    pub(in crate::responses) fn keep_running(&self, stage: Stage) {
        if let Some(keeper) = &self.keeper {
            keeper.keep_running(&self.head.id, stage);
        }
    }

    pub(in crate::responses) fn fail(&mut self, problem: Problem) {
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
                OutputItem::Message(message) => said.answer(message.content.iter().map(|part| {
                    let (OutputPart::OutputText { text, .. } | OutputPart::Refusal { refusal: text }) = part;
                    Part::text(unquoted(text))
                })),
                OutputItem::Reasoning(_) => {}
                OutputItem::FunctionCall(call) => {
                    said.call(&call.call_id, call.namespace.as_deref(), &call.name, call.arguments.as_str());
                }
                OutputItem::CustomToolCall(call) => {
                    said.call(&call.call_id, call.namespace.as_deref(), &call.name, call.input.as_str());
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
        let id = self.next_id(if kind == Text::Thought { "rs" } else { "msg" });
        let at = self.items.len();
        let mut template = None;
        if let Some(events) = &mut self.events {
            let item = match kind {
                Text::Thought => self.head.reasoning(id.clone(), Vec::new()),
                Text::Said | Text::Refused => message(id.clone(), "in_progress", Vec::new()),
            };
            events.put("response.output_item.added", &Body::Item { output_index: at, item: &item });
            let place = match kind {
                Text::Thought => {
                    let part = &SummaryPart::SummaryText { text: quoted(b"") };
                    let added = Body::Summary { item_id: &id, output_index: at, summary_index: 0, part };
                    events.put("response.reasoning_summary_part.added", &added);
                    "summary_index"
                }
                Text::Said | Text::Refused => {
                    let part = &part(kind, quoted(b""));
                    let added = Body::Part { item_id: &id, output_index: at, content_index: 0, part };
                    events.put("response.content_part.added", &added);
                    "content_index"
                }
            };
            let place = format!("\"item_id\":\"{id}\",\"output_index\":{at},\"{place}\":0");
            let rest = if kind == Text::Said { ",\"logprobs\":[]" } else { "" };
            template = Some(events.template(kind.delta(), &place, rest));
        }
        self.open = Some(Open { kind, id, escaped: Vec::new(), template });
    }

    /// Ends the item that is open, if one is.
    fn close(&mut self, status: &'static str) {
        let Some(Open { kind, id, escaped, .. }) = self.open.take() else { return };
        let (text, at) = (quoted(&escaped), self.items.len());
        if let Some(events) = &mut self.events {
            let (item_id, output_index) = (id.as_str(), at);
            match kind {
                Text::Thought => {
                    let done = Body::SummaryText { item_id, output_index, summary_index: 0, text: &text };
                    events.put("response.reasoning_summary_text.done", &done);
                    let part = &SummaryPart::SummaryText { text: text.clone() };
                    let done = Body::Summary { item_id, output_index, summary_index: 0, part };
                    events.put("response.reasoning_summary_part.done", &done);
                }
                Text::Said | Text::Refused => {
                    let done = match kind {
                        Text::Refused => Body::Refusal { item_id, output_index, content_index: 0, refusal: &text },
                        _ => Body::Text { item_id, output_index, content_index: 0, text: &text, logprobs: [] },
                    };
                    events.put(kind.done(), &done);
                    let part = &part(kind, text.clone());
                    let done = Body::Part { item_id, output_index, content_index: 0, part };
                    events.put("response.content_part.done", &done);
                }
            }
        }
        let item = match kind {
            Text::Thought => self.head.reasoning(id, vec![SummaryPart::SummaryText { text }]),
            Text::Said | Text::Refused => message(id, status, vec![part(kind, text)]),
        };
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

    fn function_call(&mut self, call: &ClientCall, called: &CalledTool, arguments: String) {
        let (id, at) = (self.next_id("fc"), self.items.len());
        let item = |arguments: String, status| {
            let CalledTool { name, namespace, .. } = called.clone();
            let (id, call_id) = (id.clone(), call.id.to_string());
            OutputItem::FunctionCall(FunctionCallItem { id, call_id, name, namespace, arguments, status })
        };
        if let Some(events) = &mut self.events {
            let added = item(String::new(), "in_progress");
            events.put("response.output_item.added", &Body::Item { output_index: at, item: &added });
            let delta = Body::Delta { item_id: &id, output_index: at, delta: &arguments };
            events.put("response.function_call_arguments.delta", &delta);
            let done = Body::Arguments { item_id: &id, output_index: at, name: &called.name, arguments: &arguments };
            events.put("response.function_call_arguments.done", &done);
        }
        let item = item(arguments, "completed");
        self.push(item);
    }

    fn custom_call(&mut self, call: &ClientCall, called: &CalledTool, input: String) {
        let (id, at) = (self.next_id("ctc"), self.items.len());
        let item = |input: String, status| {
            let CalledTool { name, namespace, .. } = called.clone();
            let (id, call_id) = (id.clone(), call.id.to_string());
            OutputItem::CustomToolCall(CustomCallItem { id, call_id, name, namespace, input, status })
        };
        if let Some(events) = &mut self.events {
            let added = item(String::new(), "in_progress");
            events.put("response.output_item.added", &Body::Item { output_index: at, item: &added });
            let delta = Body::Delta { item_id: &id, output_index: at, delta: &input };
            events.put("response.custom_tool_call_input.delta", &delta);
            let done = Body::Input { item_id: &id, output_index: at, input: &input };
            events.put("response.custom_tool_call_input.done", &done);
        }
        let item = item(input, "completed");
        self.push(item);
    }
}

impl Head {
    fn reasoning(&self, id: String, summary: Vec<SummaryPart>) -> OutputItem {
        // Thoughts stay in the session. A client that wants something to give back gets the name of the item.
        let encrypted_content = (self.echo.thoughts == Thoughts::Returnable).then(|| id.clone());
        OutputItem::Reasoning(ReasoningItem { id, summary, encrypted_content })
    }
}

impl Text {
    fn delta(self) -> &'static str {
        match self {
            Self::Said => "response.output_text.delta",
            Self::Refused => "response.refusal.delta",
            Self::Thought => "response.reasoning_summary_text.delta",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Said => "response.output_text.done",
            Self::Refused => "response.refusal.done",
            Self::Thought => "response.reasoning_summary_text.done",
        }
    }
}

fn message(id: String, status: &'static str, content: Vec<OutputPart>) -> OutputItem {
    OutputItem::Message(MessageItem { id, status, role: "assistant", content })
}

fn part(kind: Text, text: Box<RawValue>) -> OutputPart {
    match kind {
        Text::Refused => OutputPart::Refusal { refusal: text },
        Text::Said | Text::Thought => OutputPart::OutputText { text, annotations: [], logprobs: [] },
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
        Self::end(self, tokens);
        self.keep();
    }

    fn fail(&mut self, failure: ExchangeError, _: &RequestId) {
        Self::fail(self, error::problem(failure));
    }

    fn keep_alive(&mut self) {
        match self.status {
            Status::InProgress => self.sign_of_life(),
            // Without a name it cannot be told of yet.
            _ => self.out().extend_from_slice(&sse::KEEP_ALIVE),
        }
    }
}

impl AnswerSink for Answer {
    fn begun(&mut self, _: usize, place: AnswerPlace) {
        if self.head.id.is_empty() {
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
        let called = self.head.names.called(&call.tool);
        let arguments = String::from_utf8_lossy(&call.arguments.0).into_owned();
        match called.kind {
            ToolKind::Function => self.function_call(call, &called, arguments),
            ToolKind::Custom => self.custom_call(call, &called, custom_input(arguments)),
        }
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
