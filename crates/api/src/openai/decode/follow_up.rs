//! Results of calls: what a client sends after an answer that called its tools.

use std::borrow::Cow;

use gembridge_core::exchange::{CallRef, CallResult, FollowUp};
use gembridge_core::model::{Content, Message, ReturnOutcome, Role, ToolReturn, blocks_with_names};

use super::brief;
use crate::openai::wire::{self, ChatRequest, ToolCall};
use crate::problem::Problem;

/// `None`: the request does not go on with calls. Only what stands after the last answer counts: what was called and
/// given back before is history.
pub fn follow_up(request: &ChatRequest<'_>, conversation: &[Message]) -> Result<Option<FollowUp>, Problem> {
    let messages = request.messages.as_ref().map_or(&[][..], |messages| &messages.0);
    let last = conversation.iter().rposition(|message| message.role == Role::Assistant);
    let mut open = last.map_or_else(Open::default, |last| Open::of(&messages[last]));
    let after = last.map_or(0, |last| last + 1);
    let called = !open.0.is_empty();
    let (mut results, mut more) = (Vec::new(), Vec::new());
    for (at, message) in conversation.iter().enumerate().skip(after) {
        if message.role == Role::Tool {
            let call = open.close(at, &messages[at])?;
            // Kept while the turn goes on, unlike the request.
            let content = message.content().map(Content::detached).collect();
            results.push(CallResult { call, result: ToolReturn { outcome: ReturnOutcome::Done, content } });
        } else {
            more.push(Cow::Borrowed(message));
        }
    }
    // Calls with nothing behind them are told to an agent as what they are: the end of a history.
    let goes_on = called && (!results.is_empty() || !more.is_empty());
    Ok(goes_on.then(|| FollowUp { results, unanswered: open.0, more: blocks_with_names(more) }))
}

/// The calls of an answer that have no result yet.
#[derive(Default)]
struct Open(Vec<CallRef>);

impl Open {
    fn of(message: &wire::Message<'_>) -> Self {
        let id = |call: &ToolCall<'_>| CallRef::Id(String::from(call.id.as_deref().unwrap_or_default()));
        let mut open: Vec<_> = message.tool_calls.iter().flat_map(|calls| &calls.0).map(id).collect();
        if let Some(function) = &message.function_call {
            open.push(CallRef::Tool(String::from(function.name.as_deref().unwrap_or_default())));
        }
        Self(open)
    }

    /// The call that this message is the result of.
    fn close(&mut self, at: usize, message: &wire::Message<'_>) -> Result<CallRef, Problem> {
        let (wanted, field, name) = match (message.role.as_deref(), &message.tool_call_id, &message.name) {
            (Some("function"), _, Some(name)) => (CallRef::Tool(String::from(&**name)), "name", name),
            (_, Some(id), _) => (CallRef::Id(String::from(&**id)), "tool_call_id", id),
            (Some("function"), _, None) => return Err(missing(at, "name")),
            (_, None, _) => return Err(missing(at, "tool_call_id")),
        };
        if let Some(place) = self.0.iter().position(|open| *open == wanted) {
            return Ok(self.0.remove(place));
        }
        let message = format!(
            "`{}` is no call of the assistant's message before, or was answered already; \
             send that message with its calls, and one result for each",
            brief(name)
        );
        Err(Problem::invalid(format!("messages[{at}].{field}"), message))
    }
}

fn missing(at: usize, field: &str) -> Problem {
    let message = format!("a result of a tool has no `{field}`; say which call it is of");
    Problem::invalid(format!("messages[{at}].{field}"), message)
}
