//! The agent's questions: everything that is asked, the exact command included, and what the person typed as an answer.

use std::fmt::Write as _;

use gembridge_core::model::{Answer, Ask, AskBody, AskOption, OptionKind, ToolCall, ToolContent};

use super::style::Style;
use super::{diff, tool};
use crate::terminal::escape;

/// What is shown of a tool's input at most; a longer one is cut with a word about it, never in silence.
const MOST_INPUT: usize = 4096;

/// The question with its numbered answers. The cursor stays behind the prompt.
pub fn question(ask: &Ask, style: Style) -> String {
    match &ask.body {
        AskBody::Permission { tool, options, .. } => permission(tool, options, style),
        AskBody::Form { message } => {
            format!(
                "{} {}\n  (this question cannot be answered here: Enter declines it) ",
                style.yellow("?"),
                escape::line(message)
            )
        }
        AskBody::Extension { method } => {
            format!(
                "{} the agent asks `{}`, which is unknown here: Enter declines it ",
                style.yellow("?"),
                escape::line(method)
            )
        }
    }
}

/// The answer that `typed` means: the number of an option, `y` for the least that says yes, `n` for no. `None` is
/// neither, and the question is asked again.
pub fn answer(ask: &Ask, typed: &str) -> Option<Answer> {
    let AskBody::Permission { options, .. } = &ask.body else { return Some(Answer::Cancelled) };
    match typed.trim().to_lowercase().as_str() {
        "y" | "yes" => ask.allow_once(),
        "n" | "no" => Some(ask.reject()),
        number => {
            let number: usize = number.parse().ok()?;
            let option = choosable(options).nth(number.checked_sub(1)?)?;
            Some(Answer::Option(option.id.clone()))
        }
    }
}

fn permission(call: &ToolCall, options: &[AskOption], style: Style) -> String {
    let kind = call.kind.map_or("use a tool", tool::kind);
    let mut out = format!("{} the agent asks to {kind}:\n", style.yellow("?"));
    writeln!(out, "    {}", style.bold(&tool::title(call))).expect("writing to a String cannot fail");
    for (name, value) in input(call) {
        writeln!(out, "    {name}: {value}").expect("writing to a String cannot fail");
    }
    if let Some(description) = call.description.as_deref().filter(|text| !text.is_empty()) {
        writeln!(out, "    what for: {}", escape::line(description)).expect("writing to a String cannot fail");
    }
    if let Some(folder) = &call.working_dir {
        writeln!(out, "    in: {}", escape::line(folder)).expect("writing to a String cannot fail");
    }
    for part in call.content.iter().flatten() {
        if let ToolContent::Diff { path, old, new } = part {
            let old = old.as_ref().map(gembridge_core::model::Text::to_str);
            out.push_str(&diff::lines(path, old.as_deref(), &new.to_str(), style));
        }
    }
    for (number, option) in choosable(options).enumerate() {
        writeln!(out, "  {}) {}{}", number + 1, escape::line(&option.name), reach(option.kind))
            .expect("writing to a String cannot fail");
    }
    out.push_str("  your choice (number, y or n): ");
    out
}

/// The options that a person may choose, in the order of the agent.
fn choosable(options: &[AskOption]) -> impl Iterator<Item = &AskOption> {
    options.iter().filter(|option| option.kind != OptionKind::Unknown)
}

/// What an option means, whatever the agent calls it.
fn reach(kind: OptionKind) -> &'static str {
    match kind {
        OptionKind::AllowOnce => " — yes, this once",
        OptionKind::AllowAlways => " — yes, from now on without asking",
        OptionKind::RejectOnce => " — no",
        OptionKind::RejectAlways => " — no, from now on without asking",
        OptionKind::Unknown => "",
    }
}

/// The input of the call, name by name, where it is a JSON object.
fn input(call: &ToolCall) -> Vec<(String, String)> {
    let Some(input) = &call.input else { return Vec::new() };
    let Ok(serde_json::Value::Object(fields)) = serde_json::from_slice(&input.0) else { return Vec::new() };
    let shown = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => cut(&escape::line(text)),
        other => cut(&escape::line(&other.to_string())),
    };
    fields.iter().map(|(name, value)| (escape::line(name).into_owned(), shown(value))).collect()
}

fn cut(text: &str) -> String {
    if text.len() <= MOST_INPUT {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MOST_INPUT);
    format!("{} … and {} bytes more that are not shown", &text[..end], text.len() - end)
}
