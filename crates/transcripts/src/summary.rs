//! A session in a line: what a list of sessions shows.

use gembridge_unified::tool_names::ToolNames;
use gembridge_unified::{Block, Body, Originals, Role, UnifiedMessage};
use serde::Serialize;

use crate::damage::Damage;
use crate::output::{Piece, ReadOptions};
use crate::session::{Facts, Located, read};

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    pub facts: Facts,
    /// The agent's title, or the beginning of the first prompt.
    pub title: Option<String>,
    /// How many prompts were answered or waited for.
    pub turns: u64,
    pub messages: u64,
    pub damages: Vec<Damage>,
}

/// How many characters of a prompt are a title.
const TITLE: usize = 80;

/// Reads a session for its summary. Holds no more than the format needs.
pub fn summarise(session: &Located) -> Summary {
    let mut summary = Summary::default();
    let mut titles = Titles::default();
    let options = ReadOptions { originals: Originals::Leave, tool_names: ToolNames::Extended };
    summary.facts = read(session, options, &mut |piece| match piece {
        Piece::Message(message) => {
            summary.messages += 1;
            summary.turns += u64::from(titles.look(&message) == Looked::Prompt);
        }
        Piece::Damage(damage) => summary.damages.push(damage),
    });
    summary.title = titles.title(&summary.facts);
    summary
}

/// Looks for what a session can be called.
#[derive(Default)]
pub(crate) struct Titles {
    first: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    /// A person typed it.
    Prompt,
    Other,
}

impl Titles {
    pub fn look(&mut self, message: &UnifiedMessage) -> Looked {
        let Some(prompt) = prompt(message) else { return Looked::Other };
        self.first.get_or_insert(prompt);
        Looked::Prompt
    }

    /// The agent's title, or the beginning of the first prompt.
    pub fn title(self, facts: &Facts) -> Option<String> {
        facts.title.clone().or(self.first).map(|title| short(&title))
    }
}

/// What a person typed. Results of tools come as messages of the user, too, and are none.
fn prompt(message: &UnifiedMessage) -> Option<String> {
    if message.role != Role::User {
        return None;
    }
    let is_typed = match &message.content {
        Body::Text(_) => true,
        Body::Blocks(blocks) => blocks.iter().any(|block| !matches!(block, Block::ToolResult { .. })),
    };
    is_typed.then(|| message.text())
}

/// One line, cut at a length that fits a list.
fn short(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(TITLE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_line_of_a_bounded_length() {
        assert_eq!(short(" a\n  b\tc "), "a b c");
        let long = short(&"é".repeat(200));
        assert_eq!(long.chars().count(), TITLE + 1);
        assert!(long.ends_with('…'));
    }
}
