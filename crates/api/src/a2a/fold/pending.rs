//! What the agent waits for: answers to its questions, and results of the client's tools.

use gembridge_core::model::{Ask, AskBody, AskId, CallId, ClientCall};

use super::tools::{self, Tools};
use crate::a2a::model::Part;

#[derive(Default)]
pub struct Pending {
    asks: Vec<Question>,
    calls: Vec<ClientCall>,
    /// The agent can do nothing more without the results.
    is_parked: bool,
}

struct Question {
    ask: Ask,
    is_auto: bool,
}

impl Pending {
    /// A question came. Whether it is one that the gateway answers itself.
    pub fn asked(&mut self, ask: &Ask, auto_approved: &[String]) -> bool {
        let is_auto = is_approved(ask, auto_approved);
        self.asks.push(Question { ask: ask.clone(), is_auto });
        is_auto
    }

    pub fn answered(&mut self, id: AskId) {
        self.asks.retain(|question| question.ask.id != id);
    }

    pub fn called(&mut self, call: &ClientCall) {
        self.calls.push(call.clone());
    }

    pub fn parked(&mut self) {
        self.is_parked = !self.calls.is_empty();
    }

    /// A result came, so that the agent may go on. It says so when it waits again.
    pub fn returned(&mut self, id: CallId) {
        self.calls.retain(|call| call.id != id);
        self.is_parked = false;
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether the task waits for its client.
    pub fn holds_the_task(&self) -> bool {
        self.is_parked || self.questions().next().is_some()
    }

    pub fn calls(&self) -> &[ClientCall] {
        &self.calls
    }

    /// The questions for the client.
    pub fn questions(&self) -> impl Iterator<Item = &Ask> {
        self.asks.iter().filter(|question| !question.is_auto).map(|question| &question.ask)
    }

    /// The questions that the gateway answers itself.
    pub fn approved(&self) -> impl Iterator<Item = &Ask> {
        self.asks.iter().filter(|question| question.is_auto).map(|question| &question.ask)
    }

    /// All that is waited for, as the client is told of it.
    pub fn parts(&self, tools: &Tools) -> Vec<Part> {
        let asks = self.questions().filter_map(|ask| tools.asked(ask));
        asks.chain(self.calls.iter().map(tools::client_call)).map(Part::Data).collect()
    }
}

/// Whether the operator lets the tool run without a question.
fn is_approved(ask: &Ask, auto_approved: &[String]) -> bool {
    let AskBody::Permission { tool, .. } = &ask.body else { return false };
    let is_listed = tool.name.as_deref().is_some_and(|name| auto_approved.iter().any(|known| known == name));
    is_listed && ask.allow_once().is_some()
}
