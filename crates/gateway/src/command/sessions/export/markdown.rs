//! A session as a document that people read and keep.

use std::io::{self, Write};

use gembridge_transcripts::{Facts, Located, Summary};
use gembridge_unified::{Block, Body, Role, UnifiedMessage};

use super::Export;
use crate::command::sessions::clip::clipped;
use crate::command::sessions::show::{named_only, plain};
use crate::command::sessions::tool_line::{about, first_line};

/// Characters of an input or an output.
const MOST: usize = 4_000;

pub struct Markdown {
    summary: Summary,
    /// Whose heading stands last: one heading is enough for messages that follow each other.
    speaker: Option<Role>,
}

impl Markdown {
    pub fn new(summary: Summary) -> Self {
        Self { summary, speaker: None }
    }

    fn speaks(&mut self, out: &mut dyn Write, message: &UnifiedMessage) -> io::Result<()> {
        if self.speaker != Some(message.role) {
            self.speaker = Some(message.role);
            writeln!(out, "\n## {}", speaker(message))?;
        }
        Ok(())
    }
}

pub(super) fn speaker(message: &UnifiedMessage) -> &str {
    match message.role {
        Role::User => "User",
        Role::System => "System",
        Role::Assistant => &message.tool,
    }
}

/// What stands below the title, in pairs.
pub(super) fn known(session: &Located, summary: &Summary) -> Vec<(&'static str, String)> {
    let facts = &summary.facts;
    let time = |millis: Option<u64>| {
        let time = jiff::Timestamp::from_millisecond(i64::try_from(millis?).ok()?).ok()?;
        Some(format!("{time:.0}"))
    };
    let agent = match &facts.version {
        Some(version) => format!("{} {version}", session.agent.name()),
        None => session.agent.name().to_owned(),
    };
    let pairs = [
        ("Agent", Some(agent)),
        ("Model", facts.model.clone()),
        ("Project", facts.project.as_ref().map(|project| project.display().to_string())),
        ("Session", Some(session.id.clone())),
        ("Started", time(facts.started)),
        ("Updated", time(facts.updated)),
        ("Turns", Some(summary.turns.to_string())),
        ("Tokens", Some(facts.usage.total().to_string())),
    ];
    pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

impl Export for Markdown {
    fn begin(&mut self, out: &mut dyn Write, session: &Located) -> io::Result<()> {
        let title = self.summary.title.as_deref().unwrap_or("Session");
        writeln!(out, "# {}\n", first_line(title, 120))?;
        for (name, value) in known(session, &self.summary) {
            writeln!(out, "- {name}: {}", first_line(&value, 400))?;
        }
        Ok(())
    }

    fn message(&mut self, out: &mut dyn Write, message: &UnifiedMessage) -> io::Result<()> {
        match &message.content {
            Body::Text(text) if text.trim().is_empty() => Ok(()),
            Body::Text(text) => {
                self.speaks(out, message)?;
                write_text(out, message.role, text)
            }
            Body::Blocks(blocks) => {
                for block in blocks {
                    // A result belongs to the call above it, whoever the agent says it comes from.
                    if !matches!(block, Block::ToolResult { .. }) {
                        self.speaks(out, message)?;
                    }
                    write_block(out, message.role, block)?;
                }
                Ok(())
            }
        }
    }

    fn end(&mut self, _: &mut dyn Write, _: &Facts) -> io::Result<()> {
        Ok(())
    }
}

fn write_block(out: &mut dyn Write, role: Role, block: &Block) -> io::Result<()> {
    match block {
        Block::Text { text } => write_text(out, role, text),
        Block::Thinking { thinking } => {
            writeln!(out)?;
            thinking.trim().lines().try_for_each(|line| writeln!(out, "> {line}"))
        }
        Block::ToolUse { name, input, .. } => {
            writeln!(out, "\n**{}** {}\n", inline(name), inline(&about(input)))?;
            fenced(out, "json", &format!("{input:#}"))
        }
        Block::ToolResult { content, is_error, exit_code, .. } => {
            let failed = if *is_error { " (failed)" } else { "" };
            let code = exit_code.map(|code| format!(" (exit code {code})")).unwrap_or_default();
            writeln!(out, "\nResult{failed}{code}:\n")?;
            fenced(out, "text", &plain(content))
        }
        other => writeln!(out, "\n{}", inline(&named_only(other))),
    }
}

/// What a model or a person wrote is Markdown already. What a program added is not meant to be read as such.
fn write_text(out: &mut dyn Write, role: Role, text: &str) -> io::Result<()> {
    writeln!(out)?;
    match role {
        Role::System => fenced(out, "text", text),
        Role::User | Role::Assistant => writeln!(out, "{}", text.trim_end()),
    }
}

/// Code in a line, whatever it holds.
fn inline(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let ticks = "`".repeat(longest_run(text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{space}{text}{space}{ticks}")
}

/// A block whose fence is longer than any inside it.
fn fenced(out: &mut dyn Write, language: &str, text: &str) -> io::Result<()> {
    let text = clipped(text, MOST);
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    writeln!(out, "{fence}{language}\n{}\n{fence}", text.trim_end())
}

fn longest_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_those_inside_it() {
        let mut out = Vec::new();
        fenced(&mut out, "text", "a\n````\nb").unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "`````text\na\n````\nb\n`````\n");
        assert_eq!(inline("a`b"), "``a`b``");
        assert_eq!(inline("`b"), "`` `b ``");
    }
}
