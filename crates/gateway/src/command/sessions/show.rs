//! `gembridge sessions show`: a conversation as text, its tools in a line each.

use std::collections::HashMap;
use std::fmt::Write as _;

use gembridge_transcripts::{Piece, Summary, read, summarise};
use gembridge_unified::{Block, Body, Role, UnifiedMessage};
use serde_json::Value;

use super::clip::clipped;
use super::list::{age, amount};
use super::tool_line::{about, first_line};
use super::{named, scan, warn};
use crate::cli::args::sessions::ShowSessionArgs;
use crate::command::Context;
use crate::exit::CommandError;
use crate::render::style::Style;
use crate::terminal::{self, escape};

/// Characters of an input or an output with `--full`.
const MOST: usize = 4_000;

pub fn run(args: &ShowSessionArgs, context: &Context) -> Result<(), CommandError> {
    let scan = scan(context)?;
    let session = named(args.id.as_deref(), &scan)?;
    let style = Style::of(context.terminal.stdout);
    let summary = summarise(session);
    warn(&summary.damages);
    terminal::print(&heading(session.agent.name(), &summary, style))?;
    let detail = if args.full { Detail::Full } else { Detail::Lines };
    let mut page = Page::new(style, detail);
    let mut printed = Ok(());
    read(session, args.reading.options(), &mut |piece| {
        if let Piece::Message(message) = piece
            && printed.is_ok()
        {
            printed = terminal::print(&page.message(&message));
        }
    });
    printed?;
    terminal::print(&page.finish())
}

pub(super) fn heading(agent: &str, summary: &Summary, style: Style) -> String {
    let facts = &summary.facts;
    let title = summary.title.as_deref().unwrap_or("(no title)");
    let mut known = vec![agent.to_owned()];
    known.extend(facts.model.clone());
    known.extend(facts.project.as_ref().map(|project| project.display().to_string()));
    known.push(match summary.turns {
        1 => "1 turn".to_owned(),
        turns => format!("{turns} turns"),
    });
    known.push(format!("{} tokens", amount(facts.usage.total())));
    if let Some(updated) = facts.updated {
        known.push(age(super::list::now().saturating_sub(updated)));
    }
    format!("{}\n{}\n", style.bold(&escape::line(title)), style.dim(&escape::line(&known.join(" · "))))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// A call is one line.
    Lines,
    /// With what went in and came out.
    Full,
}

pub(super) struct Page {
    style: Style,
    detail: Detail,
    /// Calls whose result has not been met: some agents write it into a later message.
    called: HashMap<String, (String, Value)>,
}

impl Page {
    pub(super) fn new(style: Style, detail: Detail) -> Self {
        Self { style, detail, called: HashMap::new() }
    }

    fn message(&mut self, message: &UnifiedMessage) -> String {
        match &message.content {
            Body::Text(text) => {
                let mut out = String::new();
                self.text(message.role, text, &mut out);
                out
            }
            Body::Blocks(blocks) => self.blocks(message.role, blocks),
        }
    }

    pub(super) fn blocks(&mut self, role: Role, blocks: &[Block]) -> String {
        let mut out = String::new();
        for block in blocks {
            self.block(role, block, &mut out);
        }
        out
    }

    fn block(&mut self, role: Role, block: &Block, out: &mut String) {
        match block {
            Block::Text { text } => self.text(role, text, out),
            Block::Thinking { thinking } => {
                let line = format!("{}{}", self.style.thought_mark(), escape::text(thinking.trim_end()));
                add(out, format_args!("\n{}\n", self.style.dim(&line)));
            }
            Block::ToolUse { id, name, input } => {
                self.called.insert(id.clone(), (name.clone(), input.clone()));
            }
            Block::ToolResult { tool_use_id, content, is_error, exit_code } => {
                let (name, input) = self.called.remove(tool_use_id).unwrap_or_else(|| ("tool".to_owned(), Value::Null));
                let has_failed = *is_error || exit_code.is_some_and(|code| code != 0);
                let mark = if has_failed { self.style.red("✗") } else { self.style.green("✓") };
                let output = plain(content);
                self.call(&mark, &name, &input, out);
                if self.detail == Detail::Full {
                    self.indented(&output, out);
                } else if has_failed {
                    let why = first_line(&output, 160);
                    out.push_str(&self.style.dim(&format!("    {}\n", escape::line(&why))));
                }
            }
            other => add(out, format_args!("\n{}\n", self.style.dim(&escape::line(&named_only(other))))),
        }
    }

    fn text(&self, role: Role, text: &str, out: &mut String) {
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        match role {
            Role::User => add(out, format_args!("\n{}\n", self.style.bold(&format!("> {}", escape::text(text))))),
            Role::Assistant => add(out, format_args!("\n{}\n", escape::text(text))),
            // What a program adds is long and the same each time.
            Role::System if self.detail == Detail::Lines => {
                let line = format!("[{}]", first_line(text, 100));
                add(out, format_args!("\n{}\n", self.style.dim(&escape::line(&line))));
            }
            Role::System => add(out, format_args!("\n{}\n", self.style.dim(&escape::text(text)))),
        }
    }

    fn call(&self, mark: &str, name: &str, input: &Value, out: &mut String) {
        add(out, format_args!("{mark} {} {}\n", escape::line(name), self.style.dim(&escape::line(&about(input)))));
        if self.detail == Detail::Full {
            self.indented(&format!("{input:#}"), out);
        }
    }

    fn indented(&self, text: &str, out: &mut String) {
        for line in clipped(text, MOST).lines() {
            out.push_str(&self.style.dim(&format!("    {}", escape::line(line))));
            out.push('\n');
        }
    }

    /// Calls that never came to a result.
    fn finish(self) -> String {
        let mut out = String::new();
        for (name, input) in self.called.values() {
            self.call(&self.style.yellow("◐"), name, input, &mut out);
        }
        out
    }
}

fn add(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a String cannot fail");
}

/// A result as text.
pub(super) fn plain(content: &Body) -> String {
    match content {
        Body::Text(text) => text.clone(),
        Body::Blocks(blocks) => {
            let texts = blocks.iter().map(|block| match block {
                Block::Text { text } => text.clone(),
                other => named_only(other),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}

/// What is not text, by its kind.
pub(super) fn named_only(block: &Block) -> String {
    match block {
        Block::Image { .. } => "[image]".to_owned(),
        Block::Audio { .. } => "[audio]".to_owned(),
        Block::Document { title, .. } => format!("[document {title}]"),
        Block::ResourceLink { uri, name } => format!("[{name}]({uri})"),
        Block::Diff { path, .. } => format!("[change of {path}]"),
        Block::Terminal { terminal_id } => format!("[terminal {terminal_id}]"),
        Block::Other { kind, .. } => format!("[{kind}]"),
        Block::Text { text } | Block::Thinking { thinking: text } => text.clone(),
        Block::ToolUse { name, .. } => format!("[call of {name}]"),
        Block::ToolResult { .. } => "[result]".to_owned(),
    }
}
