//! An answer as lines of JSON. The hot path: the text is spliced between two halves of a line that was serialised once.

use bytes::{BufMut as _, BytesMut};
use gembridge_core::exchange::{AnswerSink, ExchangeError, Finish, TokenCount};
use gembridge_core::model::{AgentName, ClientCall};

use super::{Head, call_of, reason};
use crate::dialect::{StreamEncoder, Template, Thoughts, quoted};
use crate::identity::RequestId;
use crate::ollama::{error, wire};

/// What [`Template`] looks for, as the body of a JSON string.
const HOLE: &[u8] = b"\\u0001";

pub(in crate::ollama) struct Lines {
    head: Head,
    text: Template,
    thought: Template,
    reason: &'static str,
    out: BytesMut,
}

impl Lines {
    pub(in crate::ollama) fn new(head: Head) -> Self {
        let (empty, hole) = (quoted(b"").unwrap_or_default(), quoted(HOLE).unwrap_or_default());
        let text = Template::of(&line(&head.line(&hole, None, &[])));
        let thought = Template::of(&line(&head.line(&empty, Some(&hole), &[])));
        Self { text, thought, reason: "stop", out: BytesMut::new(), head }
    }
}

fn line(line: &wire::Line<'_>) -> Vec<u8> {
    let mut json = serde_json::to_vec(line).expect("a line holds strings and numbers only");
    json.push(b'\n');
    json
}

impl AnswerSink for Lines {
    /// Clients look for the name that they asked for.
    fn default_model(&mut self, _: &AgentName) {}

    fn text(&mut self, _: usize, escaped: &[u8]) {
        self.head.clock.said();
        self.text.fill(escaped, &mut self.out);
    }

    fn thought(&mut self, _: usize, escaped: &[u8]) {
        self.head.clock.said();
        if self.head.thoughts == Thoughts::Shown {
            self.thought.fill(escaped, &mut self.out);
        }
    }

    fn refusal(&mut self, answer: usize, escaped: &[u8]) {
        self.text(answer, escaped);
    }

    fn call(&mut self, _: usize, number: usize, call: &ClientCall) {
        let empty = quoted(b"").unwrap_or_default();
        let calls = [call_of(number, call)];
        self.out.put_slice(&line(&self.head.line(&empty, None, &calls)));
    }

    fn finish(&mut self, _: usize, finish: Finish) {
        self.reason = reason(finish);
    }
}

impl StreamEncoder for Lines {
    fn out(&mut self) -> &mut BytesMut {
        &mut self.out
    }

    fn end(&mut self, tokens: TokenCount) {
        let last = self.head.last(self.reason, Some(self.head.clock.counts(tokens)));
        self.out.put_slice(&last);
        self.out.put_u8(b'\n');
    }

    fn fail(&mut self, failure: ExchangeError, _: &RequestId) {
        error::line(&mut self.out, &error::problem(failure));
    }

    /// A line in which nothing is said: there are no comments in this format.
    fn keep_alive(&mut self) {
        self.text.fill(b"", &mut self.out);
    }
}
