//! One answer in the making: the events of its turn go in, pieces come out, and in the end the way it ended.

use std::borrow::Cow;

use gembridge_core::model::{Content, Event, Failure, FailureKind, Outcome, Stop, Text, Usage};
use gembridge_core::session::conversation::{Fingerprint, Growing, Role};

use super::Pieces;
use super::cut::{Cut, Passed};
use super::surrogate::Halves;
use super::tool::ToolResults;
use crate::openai::decode::TokenLimit;
use crate::openai::wire::FinishReason;

pub(in crate::openai) struct Reading {
    text: Halves,
    thought: Halves,
    cut: Option<Cut>,
    tools: Option<ToolResults>,
    /// The conversation with this answer as its newest message, as far as it has come.
    fingerprint: Option<Growing>,
    usage: Usage,
    heard: bool,
    said: bool,
    /// Whether the last line of the answer has no end yet.
    mid_line: bool,
}

#[derive(Clone, Debug, Default)]
pub(in crate::openai) struct ReadingOptions {
    pub stop: Vec<String>,
    pub limit: Option<TokenLimit>,
    pub show_tools: bool,
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::openai) enum Ending {
    /// The agent is done, and knows what it said.
    Finished(FinishReason),
    /// The agent is done, but what it keeps of this turn is not what the client has.
    Forgotten(FinishReason),
    /// We ended it; the agent still works.
    Cut(FinishReason),
    Failed(Failure),
}

impl Reading {
    /// `fingerprint` is that of everything said before, where this answer shall be found again.
    pub(in crate::openai) fn new(options: ReadingOptions, fingerprint: Option<Fingerprint>) -> Self {
        let fingerprint = fingerprint.map(|before| before.begin(Role::Assistant));
        Self {
            text: Halves::default(),
            thought: Halves::default(),
            cut: Cut::new(options.stop, options.limit),
            tools: options.show_tools.then(ToolResults::default),
            fingerprint,
            usage: Usage::default(),
            heard: false,
            said: false,
            mid_line: false,
        }
    }

    /// Whether the agent has done anything for the prompt yet.
    pub(in crate::openai) fn heard(&self) -> bool {
        self.heard
    }

    /// Whether anything has come out yet.
    pub(in crate::openai) fn said(&self) -> bool {
        self.said
    }

    pub(in crate::openai) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The conversation with the whole answer.
    pub(in crate::openai) fn into_fingerprint(self) -> Option<Fingerprint> {
        self.fingerprint.map(Growing::end)
    }

    /// Reads one event of the turn; `Some` is the end.
    pub(in crate::openai) fn event(&mut self, event: &Event, out: &mut impl Pieces) -> Option<Ending> {
        self.heard |= is_done_for_the_prompt(event);
        self.said |= matches!(event, Event::Text(_) | Event::Thought(_) | Event::Content(_));
        match event {
            Event::Text(text) => self.on_text(text, out),
            Event::Thought(text) => self.on_thought(text, out),
            Event::Content(content) => {
                let words = in_words(content);
                self.say(&words, out)
            }
            Event::ToolCall(call) => {
                let result = self.tools.as_mut().and_then(|tools| tools.update(call))?;
                // A heading is one only at the beginning of a line.
                if self.mid_line { self.say(&format!("\n\n{result}"), out) } else { self.say(&result, out) }
            }
            Event::Usage(usage) => {
                self.usage.merge(usage);
                None
            }
            Event::Ended(outcome) => Some(self.on_ended(outcome, out)),
            Event::Prompted { .. }
            | Event::Started
            | Event::Plan(_)
            | Event::Asked(_)
            | Event::Answered { .. }
            | Event::Context { .. }
            | Event::Mode(_)
            | Event::Model(_)
            | Event::Commands(_)
            | Event::Options(_)
            | Event::Title(_)
            | Event::Other { .. }
            | Event::AgentReplaced { .. }
            | Event::Called(_)
            | Event::Parked(_)
            | Event::Returned { .. }
            | Event::Output(_) => None,
        }
    }

    fn on_text(&mut self, text: &Text, out: &mut impl Pieces) -> Option<Ending> {
        let escaped = self.text.join(text);
        if escaped.is_empty() {
            return None;
        }
        let plain = match &escaped {
            // Nothing was joined or held back: the text itself knows how to unescape.
            Cow::Borrowed(bytes) if bytes.len() == text.len() => text.to_str(),
            other => Cow::Owned(unescaped(other)),
        };
        if self.cut.is_some() {
            return self.say(&plain, out);
        }
        if let Some(fingerprint) = &mut self.fingerprint {
            fingerprint.text(&plain);
        }
        self.mid_line = !plain.ends_with('\n');
        out.text(&escaped);
        None
    }

    fn on_thought(&mut self, text: &Text, out: &mut impl Pieces) -> Option<Ending> {
        let escaped = self.thought.join(text);
        let Some(cut) = &mut self.cut else {
            if !escaped.is_empty() {
                out.thought(&escaped);
            }
            return None;
        };
        let passed = cut.thought(&unescaped(&escaped));
        if !passed.text.is_empty() {
            out.thought(&Text::plain(passed.text).to_escaped());
        }
        passed.end.map(Ending::Cut)
    }

    /// Plain text on its way out, past the client's limits.
    fn say(&mut self, text: &str, out: &mut impl Pieces) -> Option<Ending> {
        match &mut self.cut {
            Some(cut) => {
                let passed = cut.text(text);
                self.pass(passed, out).map(Ending::Cut)
            }
            None => self.pass(Passed { text: text.to_owned(), end: None }, out).map(Ending::Cut),
        }
    }

    fn pass(&mut self, passed: Passed, out: &mut impl Pieces) -> Option<FinishReason> {
        if !passed.text.is_empty() {
            if let Some(fingerprint) = &mut self.fingerprint {
                fingerprint.text(&passed.text);
            }
            self.mid_line = !passed.text.ends_with('\n');
            out.text(&Text::plain(passed.text).to_escaped());
        }
        passed.end
    }

    fn on_ended(&mut self, outcome: &Outcome, out: &mut impl Pieces) -> Ending {
        let end = ending(outcome);
        if matches!(end, Ending::Failed(_)) {
            return end;
        }
        // A half whose other half never came is no character.
        if self.thought.rest().is_some() {
            out.thought(LONE_HALF);
        }
        if self.text.rest().is_some() {
            if let Some(fingerprint) = &mut self.fingerprint {
                fingerprint.text("\u{FFFD}");
            }
            out.text(LONE_HALF);
        }
        let rest = self.cut.as_mut().map(Cut::rest);
        match rest.and_then(|rest| self.pass(rest, out)) {
            // The agent said more than the client has.
            Some(reason) => Ending::Forgotten(reason),
            None => end,
        }
    }
}

/// Commands, titles and the like are news of the session: agents send them whatever becomes of the prompt.
pub(in crate::openai) fn is_done_for_the_prompt(event: &Event) -> bool {
    match event {
        Event::Text(_)
        | Event::Thought(_)
        | Event::Content(_)
        | Event::ToolCall(_)
        | Event::Plan(_)
        | Event::Asked(_)
        | Event::Answered { .. }
        | Event::Called(_)
        | Event::Parked(_)
        | Event::Output(_)
        | Event::Ended(_) => true,
        Event::Prompted { .. }
        | Event::Started
        | Event::Usage(_)
        | Event::Context { .. }
        | Event::Mode(_)
        | Event::Model(_)
        | Event::Commands(_)
        | Event::Options(_)
        | Event::Title(_)
        | Event::Other { .. }
        | Event::AgentReplaced { .. }
        | Event::Returned { .. } => false,
    }
}

const LONE_HALF: &[u8] = b"\\ufffd";

/// The agent's word for the end, in this dialect. A bound of the agent on its own work leaves an answer that is not
/// complete, so it counts as `length`; a person who stopped the turn elsewhere wanted it to end there.
fn ending(outcome: &Outcome) -> Ending {
    match outcome {
        Outcome::Finished(Stop::EndTurn | Stop::Other(_)) => Ending::Finished(FinishReason::Stop),
        Outcome::Finished(Stop::MaxTokens | Stop::MaxTurnRequests) => Ending::Forgotten(FinishReason::Length),
        Outcome::Finished(Stop::Refusal) => Ending::Forgotten(FinishReason::ContentFilter),
        Outcome::Cancelled => Ending::Forgotten(FinishReason::Stop),
        Outcome::Interrupted(failure) if is_full_context(failure) => Ending::Forgotten(FinishReason::Length),
        Outcome::Interrupted(failure) => Ending::Failed(failure.clone()),
    }
}

/// Providers say in words that a conversation has grown too long for the model.
fn is_full_context(failure: &Failure) -> bool {
    const WORDS: [&str; 6] = [
        "context window",
        "context length",
        "context_length_exceeded",
        "maximum number of tokens",
        "input token count",
        "prompt is too long",
    ];
    matches!(failure.kind, FailureKind::Refused { .. }) && {
        let message = failure.message.to_lowercase();
        WORDS.iter().any(|words| message.contains(words))
    }
}

/// A piece of an answer that is not text, in a client that reads text.
fn in_words(content: &Content) -> String {
    match content {
        Content::Text(text) | Content::Document { text, .. } => text.to_str().into_owned(),
        Content::Image { mime, data, .. } => format!("![image](data:{mime};base64,{})", data.to_str()),
        Content::Link { uri, name, .. } => format!("[{name}]({uri})"),
        Content::Audio { mime, .. } => format!("[audio: {mime}]"),
        Content::Blob { uri, .. } => format!("[file: {uri}]"),
        Content::Other { kind, .. } => format!("[{kind}]"),
    }
}

fn unescaped(escaped: &[u8]) -> String {
    Text::escaped(bytes::Bytes::copy_from_slice(escaped)).to_str().into_owned()
}
