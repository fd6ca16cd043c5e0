//! Tokens in logs of Claude Code: lines of one answer repeat them, with the final count on the last; copies of the answer
//! stand in sessions that go on with this one.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use serde::Deserialize;

use super::{Spent, Tokens, matching_lines, of_another_form};
use crate::damage::Damage;
use crate::session::Located;
use crate::time;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "requestId", alias = "requestRef")]
    request: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uuid: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names of the wire")]
struct Usage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
}

pub(super) fn spent(session: &Located, on: &mut dyn FnMut(Spent)) -> Vec<Damage> {
    let mut damages = Vec::new();
    let mut open: Option<Spent> = None;
    let mut models: HashMap<String, Arc<str>> = HashMap::new();
    for path in session.paths() {
        matching_lines::for_each(path, b"\"usage\"", &mut damages, &mut |line| {
            // Most lines with the word are answers; what else has it is looked at only to know that it is none.
            let line: Line<'_> = match serde_json::from_slice(line) {
                Ok(line) => line,
                Err(error) => return of_another_form(line, &error),
            };
            let Some(message) = line.message.as_ref().filter(|_| line.kind == "assistant") else { return Ok(()) };
            let Some(usage) = &message.usage else { return Ok(()) };
            let key = key(&line, message);
            let tokens = Tokens {
                input: usage.input_tokens.unwrap_or(0),
                output: usage.output_tokens.unwrap_or(0),
                cache_read: usage.cache_read_input_tokens.unwrap_or(0),
                cache_write: usage.cache_creation_input_tokens.unwrap_or(0),
                ..Tokens::default()
            };
            if let Some(open) = open.as_mut().filter(|open| open.key == Some(key)) {
                open.tokens = tokens;
                return Ok(());
            }
            let model = message.model.as_deref().filter(|model| *model != "<synthetic>").map(|model| {
                if !models.contains_key(model) {
                    models.insert(model.to_owned(), model.into());
                }
                Arc::clone(&models[model])
            });
            let at = line.timestamp.as_deref().and_then(time::of_text).unwrap_or(session.modified);
            if let Some(done) = open.replace(Spent { at, model, tokens, key: Some(key) }) {
                on(done);
            }
            Ok(())
        });
    }
    if let Some(done) = open {
        on(done);
    }
    damages
}

fn key(line: &Line<'_>, message: &Message<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let id = message.id.as_deref().or(line.uuid.as_deref()).unwrap_or_default();
    (id, line.request.as_deref()).hash(&mut hasher);
    hasher.finish()
}
