//! Finding JSON in the text of a model: all of it, a fenced block, or whatever object or list comes first.

use serde_json::{Deserializer, Value};

/// How many places are tried where an object or a list could begin.
const ATTEMPTS: usize = 64;

pub struct Found<'a> {
    /// As the model wrote it.
    pub text: &'a str,
    pub value: Value,
}

/// What could be the answer, most likely first.
pub fn candidates(text: &str) -> impl Iterator<Item = Found<'_>> {
    let whole = std::iter::once(text.trim()).filter_map(parsed);
    whole.chain(fenced(text).filter_map(parsed)).chain(embedded(text))
}

fn parsed(text: &str) -> Option<Found<'_>> {
    serde_json::from_str(text).ok().map(|value| Found { text, value })
}

/// What stands between two fences.
fn fenced(text: &str) -> impl Iterator<Item = &str> {
    text.split("```").skip(1).step_by(2).map(|block| {
        let block = block.trim();
        let marked = block.strip_prefix("json").filter(|rest| rest.starts_with(['\n', '\r', ' ', '{', '[']));
        marked.unwrap_or(block).trim()
    })
}

/// Objects and lists between words, one after another; what stands inside of one is not looked at again.
fn embedded(text: &str) -> impl Iterator<Item = Found<'_>> {
    let mut from = 0;
    let mut attempts = 0;
    std::iter::from_fn(move || {
        while attempts < ATTEMPTS {
            attempts += 1;
            let start = from + text[from..].find(['{', '['])?;
            let mut values = Deserializer::from_str(&text[start..]).into_iter::<Value>();
            if let Some(Ok(value)) = values.next() {
                let end = start + values.byte_offset();
                from = end;
                return Some(Found { text: &text[start..end], value });
            }
            from = start + 1;
        }
        None
    })
}
