//! How a turn ended, and what it used. The usual end says nothing.

use gembridge_core::model::{Outcome, Stop, Usage};

use super::style::Style;
use crate::exit::with_way_out;
use crate::terminal::escape;

/// Lines of the agent's standard error that are shown with a failure.
const MOST_STDERR: usize = 8;

pub fn lines(outcome: &Outcome, style: Style) -> String {
    match outcome {
        Outcome::Finished(Stop::EndTurn) => String::new(),
        Outcome::Finished(Stop::MaxTokens) => {
            format!("{}\n", style.yellow("! the answer reached the model's length limit"))
        }
        Outcome::Finished(Stop::MaxTurnRequests) => {
            format!("{}\n", style.yellow("! the agent reached its limit of model calls in one turn"))
        }
        Outcome::Finished(Stop::Refusal) => format!("{}\n", style.yellow("! the agent refused to go on")),
        Outcome::Finished(Stop::Other(reason)) => {
            format!("{}\n", style.yellow(&format!("! the agent stopped: {}", escape::line(reason))))
        }
        Outcome::Cancelled => format!("{}\n", style.dim("· cancelled")),
        Outcome::Interrupted(failure) => {
            let mut out = format!("{} {}\n", style.red("✗"), escape::line(&with_way_out(failure)));
            let tail: Vec<_> = failure.stderr_tail.iter().flat_map(|tail| tail.lines()).collect();
            for line in &tail[tail.len().saturating_sub(MOST_STDERR)..] {
                out.push_str(&style.dim(&format!("    {}", escape::line(line))));
                out.push('\n');
            }
            out
        }
    }
}

/// The tokens of a turn, as far as the agent told.
pub fn usage(usage: &Usage) -> Option<String> {
    // A zero is worth a word for input and output, not for the rest.
    let some = |count: Option<u64>| count.filter(|count| *count > 0);
    let parts = [
        (usage.input, "in"),
        (usage.output, "out"),
        (some(usage.thought), "thinking"),
        (some(usage.cached_read), "cached"),
    ];
    let mut parts: Vec<_> =
        parts.into_iter().filter_map(|(count, what)| Some(format!("{} {what}", grouped(count?)))).collect();
    if parts.is_empty() {
        parts.push(format!("{} in all", grouped(usage.total?)));
    }
    Some(format!("· tokens: {}", parts.join(" · ")))
}

/// Thousands set apart, as people read them.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_names_only_what_was_reported() {
        assert_eq!(usage(&Usage::default()), None);
        let some = Usage { input: Some(1_234_567), output: Some(89), cached_read: Some(1000), ..Usage::default() };
        assert_eq!(usage(&some).unwrap(), "· tokens: 1 234 567 in · 89 out · 1 000 cached");
        assert_eq!(usage(&Usage { total: Some(12), ..Usage::default() }).unwrap(), "· tokens: 12 in all");
    }
}
