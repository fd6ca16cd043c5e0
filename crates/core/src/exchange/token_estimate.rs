//! An estimate of the tokens of a text, for limits and for what an agent does not count.
//!
//! Agents have no tokenizer for us. A character of ASCII counts as a quarter of a token, any other as one: near the
//! truth for prose in most languages, and the same for everybody.

use super::Exchanges;
use crate::model::{ClientTool, Content, Message, Part};

/// Counted in quarters, so that pieces add up to the same as their whole.
pub(super) const TOKEN: u64 = 4;

pub(super) fn of_character(character: char) -> u64 {
    if character.is_ascii() { 1 } else { TOKEN }
}

pub(super) fn of_text(text: &str) -> u64 {
    // Prose is ASCII more often than not, and that is seen at a glance.
    if text.is_ascii() { text.len() as u64 } else { text.chars().map(of_character).sum() }
}

/// All that a model reads of a request: what was said, and the tools that it may call.
pub(super) fn of_request(history: &[Message], tools: &[ClientTool]) -> u64 {
    let part = |part: &Part| match part {
        Part::Content(Content::Text(text) | Content::Document { text, .. }) => of_text(&text.to_str()),
        Part::Content(_) => 0,
        Part::Call { call, arguments } => of_text(&call.tool) + of_text(&arguments.to_str()),
        Part::ResultOf(call) => of_text(&call.tool),
    };
    let said: u64 = history.iter().flat_map(|message| &message.parts).map(part).sum();
    let tool = |tool: &ClientTool| {
        let schema = tool.schema.as_ref().map_or(0, |schema| schema.0.len() as u64);
        of_text(&tool.name) + tool.description.as_deref().map_or(0, of_text) + schema
    };
    said + tools.iter().map(tool).sum::<u64>()
}

impl Exchanges {
    /// About how many tokens a model reads of a request.
    pub fn tokens_of_request(history: &[Message], tools: &[ClientTool]) -> u64 {
        tokens(of_request(history, tools))
    }
}

/// So many quarters in whole tokens.
pub(super) fn tokens(quarters: u64) -> u64 {
    quarters.div_ceil(TOKEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_measures_what_its_characters_do() {
        for (text, quarters, in_tokens) in [("", 0, 0), ("a", 1, 1), ("four", 4, 1), ("日本", 8, 2), ("né e", 7, 2)]
        {
            assert_eq!((of_text(text), tokens(of_text(text))), (quarters, in_tokens), "{text}");
        }
    }
}
