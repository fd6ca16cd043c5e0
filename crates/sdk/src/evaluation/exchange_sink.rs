//! What an exchange tells, in its order, until somebody has time for it.

use std::collections::VecDeque;

use bytes::Bytes;
use gembridge_core::exchange::{AnswerSink, Finish};
use gembridge_core::log::LogEntry;
use gembridge_core::model::{AgentName, ClientCall, Text};

#[derive(Default)]
pub(super) struct ExchangeSink {
    pub steps: VecDeque<Step>,
}

pub(super) enum Step {
    Entry(LogEntry),
    Text(String),
    Thought(String),
    Refusal(String),
    Call(ClientCall),
    Finish(Finish),
}

fn text(escaped: &[u8]) -> String {
    Text::escaped(Bytes::copy_from_slice(escaped)).to_str().into_owned()
}

impl AnswerSink for ExchangeSink {
    fn entry(&mut self, _: usize, entry: &LogEntry) {
        self.steps.push_back(Step::Entry(entry.clone()));
    }

    /// Models are validated before.
    fn default_model(&mut self, _: &AgentName) {}

    fn text(&mut self, _: usize, escaped: &[u8]) {
        self.steps.push_back(Step::Text(text(escaped)));
    }

    fn thought(&mut self, _: usize, escaped: &[u8]) {
        self.steps.push_back(Step::Thought(text(escaped)));
    }

    fn refusal(&mut self, _: usize, escaped: &[u8]) {
        self.steps.push_back(Step::Refusal(text(escaped)));
    }

    fn call(&mut self, _: usize, _: usize, call: &ClientCall) {
        self.steps.push_back(Step::Call(call.clone()));
    }

    fn finish(&mut self, _: usize, finish: Finish) {
        self.steps.push_back(Step::Finish(finish));
    }
}
