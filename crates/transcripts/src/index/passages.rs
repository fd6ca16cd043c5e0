//! What a message says, cut into passages that can be shown and ranked one by one.

use gembridge_unified::{Block, Body, UnifiedMessage};
use serde_json::Value;

/// A passage is not longer than this, in bytes.
const LONGEST: usize = 8 << 10;

pub(super) fn of(message: &UnifiedMessage) -> Vec<String> {
    let mut text = String::new();
    add_body(&message.content, &mut text);
    cut(&text).into_iter().map(str::to_owned).collect()
}

fn add_body(body: &Body, out: &mut String) {
    match body {
        Body::Text(text) => add(text, out),
        Body::Blocks(blocks) => blocks.iter().for_each(|block| add_block(block, out)),
    }
}

/// Pictures, sounds and the like have no words.
fn add_block(block: &Block, out: &mut String) {
    match block {
        Block::Text { text } | Block::Thinking { thinking: text } => add(text, out),
        Block::ToolUse { name, input, .. } => {
            add(name, out);
            add_texts(input, out);
        }
        Block::ToolResult { content, .. } => add_body(content, out),
        Block::Document { title, .. } => add(title, out),
        Block::ResourceLink { uri, name } => {
            add(name, out);
            add(uri, out);
        }
        Block::Diff { path, old_text, new_text } => {
            add(path, out);
            add(old_text.as_deref().unwrap_or_default(), out);
            add(new_text, out);
        }
        Block::Image { .. } | Block::Audio { .. } | Block::Terminal { .. } | Block::Other { .. } => {}
    }
}

/// Every text within a value.
fn add_texts(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => add(text, out),
        Value::Array(items) => items.iter().for_each(|item| add_texts(item, out)),
        Value::Object(fields) => fields.values().for_each(|field| add_texts(field, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn add(text: &str, out: &mut String) {
    if !text.trim().is_empty() {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(text.trim());
    }
}

/// Cut where a line ends, else where a word ends, else between characters.
fn cut(mut text: &str) -> Vec<&str> {
    let mut passages = Vec::new();
    while text.len() > LONGEST {
        let end = text.floor_char_boundary(LONGEST);
        let at = text[..end].rfind('\n').or_else(|| text[..end].rfind(char::is_whitespace)).filter(|at| *at > 0);
        let (passage, rest) = text.split_at(at.unwrap_or(end));
        passages.push(passage);
        text = rest;
    }
    if !text.trim().is_empty() {
        passages.push(text);
    }
    passages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_lines_words_or_characters_and_nothing_is_lost() {
        let lines = "one two\n".repeat(3_000);
        let words = "word ".repeat(5_000);
        let letters = "é".repeat(10_000);
        for text in [lines, words, letters, String::new()] {
            let passages = cut(&text);
            assert!(passages.iter().all(|passage| passage.len() <= LONGEST));
            let kept: String = passages.concat();
            assert_eq!(kept.trim(), text.trim());
            assert!(passages.iter().all(|passage| !passage.ends_with("tw") && !passage.ends_with("wor")));
        }
    }

    #[test]
    fn the_words_of_calls_and_results_count_and_pictures_do_not() {
        let blocks = serde_json::json!([
            {"type": "text", "text": "look"},
            {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls", "n": 1, "of": ["deep", {"er": "still"}]}},
            {"type": "tool_result", "tool_use_id": "1", "content": "found", "is_error": false},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            {"type": "document", "source": {"type": "url", "url": "u"}, "title": "paper"},
            {"type": "resource_link", "uri": "file:///x", "name": "link"},
            {"type": "diff", "path": "/p", "old_text": "before", "new_text": "after"},
        ]);
        let message = serde_json::json!({"id": "m", "role": "user", "content": blocks, "timestamp": 0, "tool": "t"});
        let passages = of(&serde_json::from_value(message).unwrap());
        let expected =
            ["look", "Bash", "ls", "deep", "still", "found", "paper", "link", "file:///x", "/p", "before", "after"];
        assert_eq!(passages, [expected.join("\n")]);
    }
}
