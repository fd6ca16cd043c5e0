//! Events on their way out: numbered, and framed for a stream or for a socket.

use std::fmt::Write as _;

use bytes::{BufMut as _, BytesMut};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::responses::wire::{OutputItem, OutputPart, ResponseObject};

/// How an event is set apart from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::responses) enum Framing {
    /// Server-sent events.
    Sse,
    /// A line each; a socket sends each line as a message.
    Lines,
}

pub(super) struct Events {
    pub(super) framing: Framing,
    pub(super) out: BytesMut,
    /// The number of the next event.
    next: u64,
}

#[derive(Serialize)]
struct Numbered<'a, T> {
    r#type: &'a str,
    sequence_number: u64,
    #[serde(flatten)]
    body: T,
}

/// What an event says beside its type and number.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Body<'a> {
    Response { response: &'a ResponseObject<'a> },
    Item { output_index: usize, item: &'a OutputItem },
    Part { item_id: &'a str, output_index: usize, content_index: u8, part: &'a OutputPart },
    Summary { item_id: &'a str, output_index: usize, summary_index: u8, part: &'a OutputPart },
    Text { item_id: &'a str, output_index: usize, content_index: u8, text: &'a RawValue, logprobs: [(); 0] },
    Refusal { item_id: &'a str, output_index: usize, content_index: u8, refusal: &'a RawValue },
    SummaryText { item_id: &'a str, output_index: usize, summary_index: u8, text: &'a RawValue },
    Delta { item_id: &'a str, output_index: usize, delta: &'a str },
    Arguments { item_id: &'a str, output_index: usize, name: &'a str, arguments: &'a str },
    Input { item_id: &'a str, output_index: usize, input: &'a str },
}

impl Events {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, out: BytesMut::new(), next: 0 }
    }

    pub(super) fn put(&mut self, kind: &str, body: &Body<'_>) {
        self.begin(kind);
        let event = Numbered { r#type: kind, sequence_number: self.number(), body };
        serde_json::to_writer((&mut self.out).writer(), &event).expect("strings and numbers always serialise");
        self.end();
    }

    /// A piece of text. The hot path: nothing is serialised.
    pub(super) fn piece(&mut self, template: &Template, escaped: &[u8]) {
        let number = self.number();
        self.out.reserve(template.before.len() + template.middle.len() + escaped.len() + template.after.len() + 24);
        self.out.put_slice(template.before.as_bytes());
        write!(self.out, "{number}").expect("a buffer grows");
        self.out.put_slice(template.middle.as_bytes());
        self.out.put_slice(escaped);
        self.out.put_slice(template.after.as_bytes());
    }

    fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    fn begin(&mut self, kind: &str) {
        self.out.put_slice(self.framing.before(kind).as_bytes());
    }

    fn end(&mut self) {
        self.out.put_slice(self.framing.after().as_bytes());
    }

    /// `place` and `rest` are the fields before and after the text.
    pub(super) fn template(&self, kind: &str, place: &str, rest: &str) -> Template {
        Template {
            before: format!("{}{{\"type\":\"{kind}\",\"sequence_number\":", self.framing.before(kind)),
            middle: format!(",{place},\"delta\":\""),
            after: format!("\"{rest}}}{}", self.framing.after()),
        }
    }
}

impl Framing {
    fn before(self, kind: &str) -> String {
        match self {
            Self::Sse => format!("event: {kind}\ndata: "),
            Self::Lines => String::new(),
        }
    }

    fn after(self) -> &'static str {
        match self {
            Self::Sse => "\n\n",
            Self::Lines => "\n",
        }
    }
}

/// An event with holes for its number and for the body of a JSON string.
pub(super) struct Template {
    before: String,
    middle: String,
    after: String,
}
