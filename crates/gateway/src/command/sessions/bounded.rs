//! A stretch of a session's messages for a reader that cannot take all of it: so many messages, with long texts cut.

use gembridge_unified::{Block, Body, Source, UnifiedMessage};
use serde_json::Value;

use super::clip::clipped;

/// Characters of a text that are shown.
const TEXT: usize = 20_000;
/// Characters of what a tool was given or gave back.
const OUTPUT: usize = 4_000;
/// Bytes of an image.
const MEDIA: usize = 512 << 10;
/// Bytes of all that is shown. The first message is shown whatever it takes: what one takes is bounded, too.
const ALL: usize = 2 << 20;
/// Blocks of one message.
const BLOCKS: usize = 200;

/// Takes messages as they are read.
pub struct Bounded {
    from: usize,
    limit: usize,
    met: usize,
    bytes: usize,
    messages: Vec<Value>,
    next: Option<usize>,
}

impl Bounded {
    pub fn new(from: usize, limit: usize) -> Self {
        Self { from, limit, met: 0, bytes: 0, messages: Vec::new(), next: None }
    }

    pub fn add(&mut self, mut message: UnifiedMessage) {
        let number = self.met;
        self.met += 1;
        if number < self.from || self.next.is_some() {
            return;
        }
        if self.messages.len() >= self.limit {
            self.next = Some(number);
            return;
        }
        body(&mut message.content, TEXT);
        // Made of our own types, which always serialise.
        let value = serde_json::to_value(&message).unwrap_or_default();
        let bytes = value.to_string().len();
        if self.bytes + bytes > ALL && !self.messages.is_empty() {
            self.next = Some(number);
            return;
        }
        self.bytes += bytes;
        self.messages.push(value);
    }

    /// The messages, and the number of the first that is left, if any is.
    pub fn finish(self) -> (Vec<Value>, Option<usize>) {
        (self.messages, self.next)
    }
}

fn body(body: &mut Body, most: usize) {
    match body {
        Body::Text(text) => cut(text, most),
        Body::Blocks(blocks) => {
            let left = blocks.len().saturating_sub(BLOCKS);
            blocks.truncate(BLOCKS);
            for found in blocks.iter_mut() {
                block(found, most);
            }
            if left > 0 {
                blocks.push(note(format!("… {left} more blocks")));
            }
        }
    }
}

fn block(block: &mut Block, most: usize) {
    match block {
        Block::Text { text } => cut(text, most),
        Block::Thinking { thinking } => cut(thinking, most),
        Block::ToolUse { input, .. } => value(input),
        Block::ToolResult { content, .. } => body(content, OUTPUT),
        Block::Image { source } | Block::Audio { source } | Block::Document { source, .. } => {
            let (Source::Base64 { data, .. } | Source::Text { data, .. } | Source::Url { url: data }) = source;
            if data.len() > MEDIA {
                *block = note(format!("(left out: {} bytes of media)", data.len()));
            }
        }
        Block::Diff { old_text, new_text, .. } => {
            if let Some(old) = old_text {
                cut(old, OUTPUT);
            }
            cut(new_text, OUTPUT);
        }
        Block::Other { kind, body } => {
            let bytes = body.to_string().len();
            if bytes > OUTPUT {
                *block = note(format!("(left out: `{kind}`, {bytes} bytes)"));
            }
        }
        Block::ResourceLink { .. } | Block::Terminal { .. } => {}
    }
}

/// The input of a tool with its texts cut; one of many small parts is shown as a text.
fn value(input: &mut Value) {
    cut_texts(input);
    let written = input.to_string();
    if written.len() > 4 * OUTPUT {
        *input = serde_json::json!({ "input": clipped(&written, OUTPUT) });
    }
}

fn cut_texts(value: &mut Value) {
    match value {
        Value::String(text) => cut(text, OUTPUT),
        Value::Array(items) => items.iter_mut().for_each(cut_texts),
        Value::Object(fields) => fields.values_mut().for_each(cut_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn cut(text: &mut String, most: usize) {
    if let std::borrow::Cow::Owned(shorter) = clipped(text, most) {
        *text = shorter;
    }
}

fn note(text: String) -> Block {
    Block::Text { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(content: &Value) -> UnifiedMessage {
        serde_json::from_value(json!({"id": "m", "role": "user", "content": content, "timestamp": 7, "tool": "t"}))
            .unwrap()
    }

    fn shown(from: usize, limit: usize, contents: &[Value]) -> (Vec<Value>, Option<usize>) {
        let mut bounded = Bounded::new(from, limit);
        for content in contents {
            bounded.add(message(content));
        }
        bounded.finish()
    }

    #[test]
    fn a_page_begins_and_ends_where_it_was_asked_to_and_names_the_next() {
        let contents: Vec<_> = (0..5).map(|number| json!(number.to_string())).collect();
        let texts = |(messages, next): (Vec<Value>, Option<usize>)| {
            (messages.iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect::<Vec<_>>(), next)
        };
        assert_eq!(texts(shown(0, 2, &contents)), (vec!["0".to_owned(), "1".to_owned()], Some(2)));
        assert_eq!(texts(shown(4, 2, &contents)), (vec!["4".to_owned()], None));
        assert_eq!(texts(shown(9, 2, &contents)), (vec![], None));
    }

    #[test]
    fn an_answer_is_bounded_whatever_a_session_holds() {
        let long = "x".repeat(3 << 20);
        let result = json!({"type": "tool_result", "tool_use_id": "1", "content": long, "is_error": false});
        let many: Vec<_> = (0..5_000).map(|_| json!({"type": "text", "text": "y".repeat(100)})).collect();
        let contents = [
            json!(long),
            json!([result]),
            json!([{"type": "tool_use", "id": "1", "name": "Write", "input": {"content": long, "list": vec!["z"; 9_000]}}]),
            json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": long}}]),
            json!([{"type": "diff", "path": "p", "old_text": long, "new_text": long}]),
            json!([{"type": "other", "kind": "k", "body": {"a": long}}]),
            json!(many),
        ];
        let (messages, next) = shown(0, 100, &contents);
        assert_eq!((messages.len(), next), (7, None));
        assert!(messages.iter().all(|message| message.to_string().len() < 100_000));
        assert!(messages[0]["content"].as_str().unwrap().ends_with("more characters"));
        let page: Vec<_> = (0..200).map(|_| json!("w".repeat(19_000))).collect();
        let (messages, next) = shown(0, 500, &page);
        assert!(messages.len() < 200 && next == Some(messages.len()), "{} {next:?}", messages.len());
    }
}
