//! What an event weighs in memory, near enough: its long parts count, its small ones do not.

use crate::model::{
    Ask, AskBody, Content, Event, Failure, Message, Opaque, Outcome, Prompt, Text, ToolCall, ToolContent,
};

pub(crate) fn of_prompt(prompt: &Prompt) -> usize {
    let history: usize = prompt.history.iter().map(of_message).sum();
    history + prompt.content.iter().map(of_content).sum::<usize>()
}

pub(crate) fn of_message(message: &Message) -> usize {
    message.parts.iter().map(|part| SMALL + part.len()).sum()
}

pub(crate) fn of_event(event: &Event) -> usize {
    match event {
        Event::Prompted { prompt, .. } => of_prompt(prompt),
        Event::Text(text) | Event::Thought(text) => text.len(),
        Event::Content(content) => of_content(content),
        Event::ToolCall(call) => of_tool(call),
        Event::Plan(entries) => entries.iter().map(|entry| SMALL + entry.content.len()).sum(),
        Event::Asked(ask) => of_ask(ask),
        Event::Commands(commands) => commands.iter().map(|command| SMALL + command.description.len()).sum(),
        Event::Options(options) => options.0.len(),
        Event::Title(title) => title.len(),
        Event::AgentReplaced { reason } => reason.len(),
        Event::Ended(Outcome::Interrupted(failure)) => of_failure(failure),
        Event::Called(call) => SMALL + call.arguments.0.len(),
        Event::Returned { result, .. } => result.content.iter().map(of_content).sum(),
        Event::Parked(calls) => calls.len() * SMALL,
        Event::Output(output) => output.0.len(),
        Event::Started
        | Event::Admitted
        | Event::AnswerDeleted { .. }
        | Event::HistoryReplayed { .. }
        | Event::Answered { .. }
        | Event::Usage(_)
        | Event::Context { .. }
        | Event::Mode(_)
        | Event::Model(_)
        | Event::Other { .. }
        | Event::Ended(Outcome::Finished(_) | Outcome::Cancelled) => SMALL,
    }
}

/// Names, numbers and the vectors that hold them.
const SMALL: usize = 64;

pub(crate) fn of_content(content: &Content) -> usize {
    let long = match content {
        Content::Text(text) | Content::Document { text, .. } => text.len(),
        Content::Image { data, .. } | Content::Audio { data, .. } | Content::Blob { data, .. } => data.len(),
        Content::Link { uri, .. } => uri.len(),
        Content::Other { body, .. } => body.0.len(),
    };
    SMALL + long
}

fn of_tool(call: &ToolCall) -> usize {
    let opaque = |body: &Option<Opaque>| body.as_ref().map_or(0, |body| body.0.len());
    let content = call.content.iter().flatten().map(|content| match content {
        ToolContent::Content(content) => of_content(content),
        ToolContent::Diff { old, new, .. } => SMALL + old.as_ref().map_or(0, Text::len) + new.len(),
        ToolContent::Terminal(_) => SMALL,
        ToolContent::Other { body, .. } => body.0.len(),
    });
    size_of::<ToolCall>() + content.sum::<usize>() + opaque(&call.input) + opaque(&call.output)
}

fn of_ask(ask: &Ask) -> usize {
    match &ask.body {
        AskBody::Permission { tool, options, .. } => of_tool(tool) + options.len() * SMALL,
        AskBody::Form { message } => message.len(),
        AskBody::Extension { .. } => SMALL,
    }
}

fn of_failure(failure: &Failure) -> usize {
    failure.message.len() + failure.stderr_tail.as_ref().map_or(0, String::len)
}
