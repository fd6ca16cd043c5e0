//! A session as a person reads it in a terminal: events in, text out.
//!
//! Nothing here reads or writes anything. What comes from the agent is made harmless before it becomes output.

pub mod ask;
pub mod spinner;
pub mod style;

mod content;
mod diff;
mod outcome;
mod plan;
mod tool;

use std::collections::BTreeMap;

use gembridge_core::model::{AnsweredBy, Event, Text, ToolCall, ToolCallId, Usage};

use self::style::Style;
use crate::terminal::escape;

/// Folds the events of a session into what is written, one piece after another.
pub struct Renderer {
    style: Style,
    block: Block,
    /// The next character stands at the beginning of a line.
    is_fresh_line: bool,
    tools: BTreeMap<ToolCallId, Shown>,
    usage: Usage,
}

/// What was written last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Nothing,
    Text,
    Thought,
    Lines,
}

/// A tool call so far, and what the person has seen of it.
struct Shown {
    call: ToolCall,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Unseen,
    Begun,
    Over,
}

impl Renderer {
    pub fn new(style: Style) -> Self {
        Self { style, block: Block::Nothing, is_fresh_line: true, tools: BTreeMap::new(), usage: Usage::default() }
    }

    /// What to write for `event`; empty for what a reader need not see.
    pub fn event(&mut self, event: &Event) -> String {
        match event {
            Event::Text(text) => self.stream(Block::Text, text),
            Event::Thought(text) => self.stream(Block::Thought, text),
            Event::Content(content) => self.lines(&format!("{}\n", content::line(content))),
            Event::ToolCall(call) => self.tool(call),
            Event::Plan(entries) => self.lines(&plan::lines(entries, self.style)),
            Event::Answered { by, .. } => match by {
                AnsweredBy::Client(_) => String::new(),
                AnsweredBy::Policy => self.note("answered by the permission policy"),
                AnsweredBy::Timeout => self.note("no answer in time: rejected"),
                AnsweredBy::Cancel => self.note("not answered: the turn was cancelled"),
            },
            Event::Usage(usage) => {
                self.usage.merge(usage);
                String::new()
            }
            Event::Mode(mode) => self.note(&format!("mode: {mode}")),
            Event::Model(model) => self.note(&format!("model: {model}")),
            Event::AgentReplaced { reason } => {
                self.note(&format!("the agent was restarted and is told the earlier turns: {reason}"))
            }
            Event::Ended(outcome) => self.end(outcome),
            // Asked is shown by `ask`, where it is answered; the rest is for programs.
            Event::Prompted { .. }
            | Event::Started
            | Event::HistoryReplayed { .. }
            | Event::Admitted
            | Event::AnswerDeleted { .. }
            | Event::Asked(_)
            | Event::Context { .. }
            | Event::Commands(_)
            | Event::Options(_)
            | Event::Title(_)
            | Event::Other { .. }
            | Event::Called(_)
            | Event::Parked(_)
            | Event::Returned { .. }
            | Event::Output(_) => String::new(),
        }
    }

    /// Ends the line that is being streamed, if there is one: for whatever is written beside the events.
    pub fn fresh_line(&mut self) -> String {
        if std::mem::replace(&mut self.is_fresh_line, true) { String::new() } else { "\n".to_owned() }
    }

    fn stream(&mut self, block: Block, text: &Text) -> String {
        let text = text.to_str();
        if text.is_empty() {
            return String::new();
        }
        let mut out = String::new();
        if self.block != block {
            // A thought and the answer after it are two paragraphs.
            out.push_str(&self.fresh_line());
            if block == Block::Thought {
                out.push_str(self.style.thought_mark());
            }
        }
        let harmless = escape::text(&text);
        out.push_str(&if block == Block::Thought { self.style.dim(&harmless) } else { harmless.into_owned() });
        self.block = block;
        self.is_fresh_line = text.ends_with('\n');
        out
    }

    fn lines(&mut self, lines: &str) -> String {
        if lines.is_empty() {
            return String::new();
        }
        let out = format!("{}{lines}", self.fresh_line());
        self.block = Block::Lines;
        out
    }

    fn note(&mut self, note: &str) -> String {
        let line = self.style.dim(&format!("· {}", escape::line(note)));
        self.lines(&format!("{line}\n"))
    }

    fn tool(&mut self, update: &ToolCall) -> String {
        let shown = self
            .tools
            .entry(update.id.clone())
            .or_insert_with(|| Shown { call: ToolCall::update(update.id.clone()), stage: Stage::Unseen });
        shown.call.merge(update);
        let is_over = shown.call.status.is_some_and(gembridge_core::model::ToolStatus::is_final);
        let lines = match (shown.stage, is_over) {
            (Stage::Over, _) | (Stage::Begun, false) => return String::new(),
            (Stage::Unseen, false) => {
                shown.stage = Stage::Begun;
                tool::begun(&shown.call, self.style)
            }
            (Stage::Unseen | Stage::Begun, true) => {
                shown.stage = Stage::Over;
                tool::over(&shown.call, self.style)
            }
        };
        self.lines(&lines)
    }

    fn end(&mut self, outcome: &gembridge_core::model::Outcome) -> String {
        let mut lines = outcome::lines(outcome, self.style);
        if let Some(usage) = outcome::usage(&self.usage) {
            lines.push_str(&self.style.dim(&usage));
            lines.push('\n');
        }
        self.tools.clear();
        self.usage = Usage::default();
        let mut out = self.lines(&lines);
        out.push_str(&self.fresh_line());
        self.block = Block::Nothing;
        out
    }
}

#[cfg(test)]
mod tests;
