//! Results of calls: what a client sends after an answer that called its tools.

use gembridge_core::exchange::{CallRef, FollowUp};
use gembridge_core::model::{Message, ReturnOutcome, Role};

use crate::dialect::OpenCalls;
use crate::openai::wire::{self, ChatRequest, ToolCall};
use crate::problem::Problem;

/// `None`: the request does not go on with calls. Only what stands after the last answer counts: what was called and
/// given back before is history.
pub fn follow_up(request: &ChatRequest<'_>, conversation: &[Message]) -> Result<Option<FollowUp>, Problem> {
    let messages = request.messages.as_ref().map_or(&[][..], |messages| &messages.0);
    let last = conversation.iter().rposition(|message| message.role == Role::Assistant);
    let mut open = OpenCalls::new(last.map(|last| calls(&messages[last])).unwrap_or_default());
    let after = last.map_or(0, |last| last + 1);
    for (at, message) in conversation.iter().enumerate().skip(after) {
        if message.role == Role::Tool {
            let (call, field) = answered(at, &messages[at])?;
            open.result(call, message, ReturnOutcome::Done, || format!("messages[{at}].{field}"))?;
        } else {
            open.said(message);
        }
    }
    Ok(open.follow_up())
}

fn calls(message: &wire::Message<'_>) -> Vec<CallRef> {
    let id = |call: &ToolCall<'_>| CallRef::Id(String::from(call.id.as_deref().unwrap_or_default()));
    let mut calls: Vec<_> = message.tool_calls.iter().flat_map(|calls| &calls.0).map(id).collect();
    if let Some(function) = &message.function_call {
        calls.push(CallRef::Tool(String::from(function.name.as_deref().unwrap_or_default())));
    }
    calls
}

/// The call that this message is the result of, and the field that says so.
fn answered(at: usize, message: &wire::Message<'_>) -> Result<(CallRef, &'static str), Problem> {
    match (message.role.as_deref(), &message.tool_call_id, &message.name) {
        (Some("function"), _, Some(name)) => Ok((CallRef::Tool(String::from(&**name)), "name")),
        (_, Some(id), _) => Ok((CallRef::Id(String::from(&**id)), "tool_call_id")),
        (Some("function"), _, None) => Err(missing(at, "name")),
        (_, None, _) => Err(missing(at, "tool_call_id")),
    }
}

fn missing(at: usize, field: &str) -> Problem {
    let message = format!("a result of a tool has no `{field}`; say which call it is of");
    Problem::invalid(format!("messages[{at}].{field}"), message)
}
