//! One answer in the making: the events of its turn go in, pieces come out, and in the end the way it ended.

use super::agent_tools::ToolResults;
use super::calls::{CallOptions, Calls, Parking};
use super::ending::{Ending, ending};
use super::fingerprint::{Fingerprint, Growing};
use super::refused_asks::RefusedAsks;
use super::request::{CallIds, TokenLimit};
use super::required_output::{HeldAnswer, RequiredOutput, Verdict};
use super::sink::{AnswerPieces, AnswerSink, Finish};
use super::stop_sequences::{Passed, StopSequences};
use super::surrogate::{Halves, Joined};
use super::token_count::{AnswerTokens, TokenCount};
use crate::model::{CallId, ClientCall, Content, Event, Outcome, Role, Stop, Text};

pub(super) struct TurnReader {
    text: Halves,
    thought: Halves,
    stop: Option<StopSequences>,
    tools: Option<ToolResults>,
    calls: Calls,
    refused: RefusedAsks,
    held: Option<HeldAnswer>,
    /// The conversation with this answer as its newest message, as far as it has come.
    fingerprint: Option<Growing>,
    tokens: AnswerTokens,
    heard: bool,
    said: bool,
    /// Whether the last line of the answer has no end yet.
    mid_line: bool,
}

#[derive(Clone, Debug)]
pub(super) struct ReaderOptions {
    pub stop: Vec<String>,
    pub limit: Option<TokenLimit>,
    /// What the agent's own tools gave back is part of the text.
    pub show_tools: bool,
    pub calls: CallOptions,
    pub required: RequiredOutput,
    /// About how much a model reads of the request, in quarters of a token.
    pub request: u64,
}

impl TurnReader {
    /// `fingerprint` is that of everything said before, where this answer shall be found again.
    pub(super) fn new(options: ReaderOptions, fingerprint: Option<Fingerprint>) -> Self {
        let fingerprint = fingerprint.map(|before| before.begin(Role::Assistant));
        Self {
            text: Halves::default(),
            thought: Halves::default(),
            stop: StopSequences::new(options.stop, options.limit),
            tools: options.show_tools.then(ToolResults::default),
            calls: Calls::new(options.calls),
            refused: RefusedAsks::default(),
            held: HeldAnswer::new(options.required),
            fingerprint,
            tokens: AnswerTokens::to(options.request),
            heard: false,
            said: false,
            mid_line: false,
        }
    }

    /// Whether the agent has done anything for the prompt yet.
    pub(super) fn heard(&self) -> bool {
        self.heard
    }

    /// Whether anything has come out yet.
    pub(super) fn said(&self) -> bool {
        self.said
    }

    /// The tokens so far.
    pub(super) fn tokens(&self) -> TokenCount {
        self.tokens.sum()
    }

    /// The tokens of all answers of the turn so far, for its next answer.
    pub(super) fn tokens_of_turn(&self) -> TokenCount {
        self.tokens.of_turn()
    }

    /// The turn had answers before this one.
    pub(super) fn go_on_from(&mut self, earlier: TokenCount) {
        self.tokens.go_on_from(earlier);
    }

    /// Calls that wait from before.
    pub(super) fn know(&mut self, waiting: Vec<ClientCall>) {
        for call in waiting {
            self.calls.know_before(call);
        }
    }

    /// The conversation with the whole answer.
    pub(super) fn into_fingerprint(self) -> Option<Fingerprint> {
        self.fingerprint.map(Growing::end)
    }

    /// Reads one event of the turn; `Some` is the end.
    pub(super) fn event(&mut self, event: &Event, out: &mut AnswerPieces<'_, impl AnswerSink>) -> Option<Ending> {
        let ending = self.read(event, out);
        self.said |= self.tokens.has_output();
        self.heard |= match &ending {
            _ if self.held.is_none() => event.is_done_for_the_prompt(),
            // What is held back may come to nothing, and then the status of the response still can say so.
            None => matches!(event, Event::Thought(_)),
            Some(Ending::Again(_) | Ending::Refused(_)) => false,
            Some(_) => true,
        };
        ending
    }

    fn read(&mut self, event: &Event, out: &mut AnswerPieces<'_, impl AnswerSink>) -> Option<Ending> {
        match event {
            Event::Text(text) => self.on_text(text, out),
            Event::Thought(text) => self.on_thought(text, out),
            Event::Content(content) => {
                let words = in_words(content);
                self.say(&words, out)
            }
            Event::ToolCall(call) => {
                self.tokens.tool();
                let result = self.tools.as_mut().and_then(|tools| tools.update(call))?;
                // A heading is one only at the beginning of a line.
                if self.mid_line { self.say(&format!("\n\n{result}"), out) } else { self.say(&result, out) }
            }
            Event::Usage(usage) => {
                self.tokens.told(usage);
                None
            }
            Event::Called(call) => {
                self.refused.went_on();
                self.calls.know((**call).clone());
                None
            }
            Event::Parked(waiting) => self.on_parked(waiting, out),
            Event::Output(output) => {
                if let Some(held) = &mut self.held {
                    held.output(output);
                }
                None
            }
            Event::Ended(outcome) => Some(self.on_ended(outcome, out)),
            Event::Context { used, .. } => {
                self.tokens.context(*used);
                None
            }
            Event::Asked(ask) => {
                self.refused.asked(ask);
                None
            }
            Event::Answered { ask, answer, by } => {
                self.refused.answered(*ask, answer, *by);
                None
            }
            Event::Started
            | Event::HistoryReplayed { .. }
            | Event::Admitted
            | Event::AnswerDeleted { .. }
            | Event::Plan(_)
            | Event::Prompted { .. }
            | Event::Returned { .. }
            | Event::Mode(_)
            | Event::Model(_)
            | Event::Commands(_)
            | Event::Options(_)
            | Event::Title(_)
            | Event::Other { .. }
            | Event::AgentReplaced { .. } => None,
        }
    }

    fn on_text(&mut self, text: &Text, out: &mut AnswerPieces<'_, impl AnswerSink>) -> Option<Ending> {
        let Joined { escaped, plain } = self.text.join(text);
        if escaped.is_empty() {
            return None;
        }
        self.refused.went_on();
        let goes_out_as_it_is = self.held.is_none() && self.stop.as_mut().is_none_or(|stop| stop.takes_whole(&plain));
        if !goes_out_as_it_is {
            return self.say(&plain, out);
        }
        if let Some(fingerprint) = &mut self.fingerprint {
            fingerprint.text(&plain);
        }
        self.tokens.text(&plain);
        self.mid_line = !plain.ends_with('\n');
        out.text(&escaped);
        None
    }

    fn on_thought(&mut self, text: &Text, out: &mut AnswerPieces<'_, impl AnswerSink>) -> Option<Ending> {
        let Joined { escaped, plain } = self.thought.join(text);
        if escaped.is_empty() {
            return None;
        }
        let Some(stop) = &mut self.stop else {
            self.tokens.thought(&plain);
            out.thought(&escaped);
            return None;
        };
        let passed = stop.thought(&plain);
        if !passed.text.is_empty() {
            self.tokens.thought(&passed.text);
            out.thought(&Text::plain(passed.text).to_escaped());
        }
        passed.end.map(Ending::Cut)
    }

    /// Plain text on its way out, unless it has to wait.
    fn say(&mut self, text: &str, out: &mut AnswerPieces<'_, impl AnswerSink>) -> Option<Ending> {
        match &mut self.held {
            Some(held) => {
                held.text(text);
                None
            }
            None => self.say_now(text, out),
        }
    }

    /// Plain text on its way out, past the client's limits.
    fn say_now(&mut self, text: &str, out: &mut AnswerPieces<'_, impl AnswerSink>) -> Option<Ending> {
        match &mut self.stop {
            Some(stop) => {
                let passed = stop.text(text);
                self.pass(passed, out).map(Ending::Cut)
            }
            None => self.pass(Passed { text: text.to_owned(), end: None }, out).map(Ending::Cut),
        }
    }

    fn pass(&mut self, passed: Passed, out: &mut AnswerPieces<'_, impl AnswerSink>) -> Option<Finish> {
        if !passed.text.is_empty() {
            if let Some(fingerprint) = &mut self.fingerprint {
                fingerprint.text(&passed.text);
            }
            self.tokens.text(&passed.text);
            self.mid_line = !passed.text.ends_with('\n');
            out.text(&Text::plain(passed.text).to_escaped());
        }
        if let Some(found) = self.stop.as_ref().and_then(StopSequences::found).filter(|_| passed.end.is_some()) {
            out.stop_sequence(found);
        }
        passed.end
    }

    fn on_ended(&mut self, outcome: &Outcome, out: &mut AnswerPieces<'_, impl AnswerSink>) -> Ending {
        let end = ending(outcome);
        if matches!(end, Ending::Failed(_)) {
            return end;
        }
        self.end_halves(out);
        if let Some(ending) = self.judged(outcome, &end, out) {
            return ending;
        }
        let rest = self.stop.as_mut().map(StopSequences::rest);
        match rest.and_then(|rest| self.pass(rest, out)) {
            // The agent said more than the client has.
            Some(reason) => Ending::NotResumable(reason),
            None => self.unless_refused(end, out),
        }
    }

    /// An agent that ends its turn over a tool that it was refused has not answered.
    fn unless_refused(&mut self, end: Ending, out: &mut AnswerPieces<'_, impl AnswerSink>) -> Ending {
        let (Ending::Finished(Finish::Stop) | Ending::NotResumable(Finish::Stop) | Ending::Cancelled) = end else {
            return end;
        };
        let Some(reason) = self.refused.reason() else { return end };
        self.tokens.text(&reason);
        out.refusal(&Text::plain(reason).to_escaped());
        Ending::NotResumable(Finish::ContentFilter)
    }

    /// A half whose other half never came is no character.
    fn end_halves(&mut self, out: &mut AnswerPieces<'_, impl AnswerSink>) {
        if self.thought.rest().is_some() {
            self.tokens.thought("\u{FFFD}");
            out.thought(LONE_HALF);
        }
        if self.text.rest().is_some() {
            match (&mut self.held, &mut self.fingerprint) {
                (Some(held), _) => return held.text("\u{FFFD}"),
                (None, Some(fingerprint)) => fingerprint.text("\u{FFFD}"),
                (None, None) => {}
            }
            self.tokens.text("\u{FFFD}");
            out.text(LONE_HALF);
        }
    }

    /// What becomes of an answer that was held back. `None`: it is out.
    fn judged(
        &mut self,
        outcome: &Outcome,
        end: &Ending,
        out: &mut AnswerPieces<'_, impl AnswerSink>,
    ) -> Option<Ending> {
        let held = self.held.as_mut()?;
        if matches!(outcome, Outcome::Finished(Stop::Refusal)) {
            let words = Some(held.take_text()).filter(|text| !text.is_empty());
            let words = words.unwrap_or_else(|| "the agent refused to answer".to_owned());
            self.tokens.text(&words);
            out.refusal(&Text::plain(words).to_escaped());
            return Some(Ending::NotResumable(Finish::Stop));
        }
        let text = match end {
            Ending::Finished(_) => match held.check() {
                Verdict::Output(output) => String::from_utf8_lossy(&output.0).into_owned(),
                Verdict::Again(prompt) => {
                    self.tokens.begin_turn(&prompt.blocks());
                    return Some(Ending::Again(prompt));
                }
                Verdict::Failed(message) => return Some(Ending::Unmet(held.unmet(), message)),
            },
            // It was ended before it was whole: what came is all there is.
            _ => held.take_text(),
        };
        match self.say_now(&text, out) {
            Some(Ending::Cut(reason)) => Some(Ending::NotResumable(reason)),
            other => other,
        }
    }

    fn on_parked(&mut self, waiting: &[CallId], out: &mut AnswerPieces<'_, impl AnswerSink>) -> Option<Ending> {
        let calls = match self.calls.park(waiting) {
            Parking::Show(calls) => calls,
            Parking::Refuse(results) => return Some(Ending::Refused(results)),
            Parking::Fail(failure) => return Some(Ending::Failed(failure)),
        };
        self.end_halves(out);
        let beside = self.held.as_mut().map(HeldAnswer::beside_a_call).unwrap_or_default();
        let ending = self.say_now(&beside, out);
        if ending.is_some() {
            return ending;
        }
        let rest = self.stop.as_mut().map(StopSequences::rest);
        if let Some(reason) = rest.and_then(|rest| self.pass(rest, out)) {
            return Some(Ending::Cut(reason));
        }
        for (number, call) in calls.iter().enumerate() {
            let arguments = String::from_utf8_lossy(&call.arguments.0);
            if let Some(fingerprint) = &mut self.fingerprint {
                fingerprint.call(&call.tool, &arguments);
            }
            self.tokens.text(&call.tool);
            self.tokens.text(&arguments);
            out.call(number, call);
        }
        // A client that is told no id of its call comes back with its history alone.
        Some(match self.calls.ids() {
            CallIds::Told => Ending::Parked(Finish::ToolCalls),
            CallIds::Missing => Ending::Finished(Finish::ToolCalls),
        })
    }
}

const LONE_HALF: &[u8] = b"\\ufffd";

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
