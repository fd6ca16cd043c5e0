//! Results of calls: what a client sends after an answer that called its tools.

use std::borrow::Cow;

use gembridge_core::exchange::{CallRef, CallResult, FollowUp};
use gembridge_core::model::{Content, Message, ReturnOutcome, ToolReturn, blocks_with_names};

use super::brief;
use crate::problem::Problem;

/// The calls of an answer that have no result yet, and what came after it.
#[derive(Default)]
pub(crate) struct OpenCalls<'m> {
    open: Vec<CallRef>,
    called: bool,
    results: Vec<CallResult>,
    more: Vec<Cow<'m, Message>>,
}

impl<'m> OpenCalls<'m> {
    /// The calls of the last answer.
    pub(crate) fn new(calls: impl IntoIterator<Item = CallRef>) -> Self {
        let open: Vec<_> = calls.into_iter().collect();
        Self { called: !open.is_empty(), open, ..Self::default() }
    }

    /// The result of a call of that answer. `place` is the field that names the call.
    pub(crate) fn result(
        &mut self,
        call: CallRef,
        result: &Message,
        outcome: ReturnOutcome,
        place: impl FnOnce() -> String,
    ) -> Result<(), Problem> {
        let Some(at) = self.open.iter().position(|open| *open == call) else {
            let (CallRef::Id(name) | CallRef::Tool(name)) = &call;
            let message = format!(
                "`{}` is no call of the assistant's message before, or was answered already; \
                 send that message with its calls, and one result for each",
                brief(name)
            );
            return Err(Problem::invalid(place(), message));
        };
        self.open.remove(at);
        self.known_result(call, result, outcome);
        Ok(())
    }

    /// The result of a call that the request does not repeat.
    pub(crate) fn known_result(&mut self, call: CallRef, result: &Message, outcome: ReturnOutcome) {
        self.called = true;
        // Kept while the turn goes on, unlike the request.
        let content = result.content().map(Content::detached).collect();
        self.results.push(CallResult { call, result: ToolReturn { outcome, content } });
    }

    /// What was said beside results.
    pub(crate) fn said(&mut self, message: &'m Message) {
        self.more.push(Cow::Borrowed(message));
    }

    /// `None`: the request does not go on with calls.
    pub(crate) fn follow_up(self) -> Option<FollowUp> {
        // Calls with nothing behind them are told to an agent as what they are: the end of a history.
        let goes_on = self.called && (!self.results.is_empty() || !self.more.is_empty());
        goes_on.then(|| FollowUp { results: self.results, unanswered: self.open, more: blocks_with_names(self.more) })
    }
}
