//! Tokens in logs of Gemini CLI: a message is written again with each change, and without its tokens when a session is
//! resumed. Its last count holds, also after it was taken back.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::{Spent, Tokens, matching_lines, of_another_form};
use crate::damage::Damage;
use crate::files;
use crate::session::Located;
use crate::time;

/// A message, or a record that has messages.
#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(default)]
    tokens: Option<Counts>,
    #[serde(borrow, default)]
    messages: Vec<Record<'a>>,
    #[serde(borrow, default, rename = "$set")]
    set: Option<Box<Record<'a>>>,
}

#[derive(Clone, Copy, Deserialize)]
struct Counts {
    #[serde(default)]
    input: u64,
    #[serde(default)]
    output: u64,
    #[serde(default)]
    cached: u64,
    #[serde(default)]
    thoughts: u64,
    #[serde(default)]
    total: Option<u64>,
}

impl Counts {
    fn tokens(self) -> Tokens {
        let tokens = Tokens {
            input: self.input.saturating_sub(self.cached),
            output: self.output,
            thoughts: self.thoughts,
            cache_read: self.cached,
            ..Tokens::default()
        };
        let other = self.total.unwrap_or(0).saturating_sub(tokens.total());
        Tokens { other, ..tokens }
    }
}

struct Known {
    at: u64,
    model: Option<Arc<str>>,
    counts: Counts,
}

#[derive(Default)]
struct Reader {
    /// By the hash of the message's id: what is held must not grow with what the messages say.
    known: HashMap<u64, Known>,
    models: HashMap<String, Arc<str>>,
    modified: u64,
}

pub(super) fn spent(session: &Located, on: &mut dyn FnMut(Spent)) -> Vec<Damage> {
    let mut damages = Vec::new();
    let mut reader = Reader { modified: session.modified, ..Reader::default() };
    for path in session.paths() {
        if path.extension().is_some_and(|extension| extension == "json") {
            reader.whole(path, &mut damages);
            continue;
        }
        let before = damages.len();
        matching_lines::for_each(path, b"\"tokens\"", &mut damages, &mut |line| {
            let record = match serde_json::from_slice(line) {
                Ok(record) => record,
                Err(error) => return of_another_form(line, &error),
            };
            reader.record(&record);
            Ok(())
        });
        // An object over several lines, which older versions left under the name of a log.
        if damages.len() > before && reader.object(path).is_ok() {
            damages.truncate(before);
        }
    }
    for known in reader.known.into_values() {
        on(Spent { at: known.at, model: known.model, tokens: known.counts.tokens(), key: None });
    }
    damages
}

impl Reader {
    fn whole(&mut self, path: &Path, damages: &mut Vec<Damage>) {
        if let Err(reason) = self.object(path) {
            damages.push(Damage { path: path.to_owned(), line: None, reason });
        }
    }

    fn object(&mut self, path: &Path) -> Result<(), String> {
        let mut bytes = Vec::new();
        let read = files::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
        read.map_err(|error| format!("cannot be opened: {error}"))?;
        let record = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        self.record(&record);
        Ok(())
    }

    fn record(&mut self, record: &Record<'_>) {
        if let (Some(id), Some(counts)) = (&record.id, record.tokens) {
            self.message(id, counts, record);
        }
        let more = record.set.iter().flat_map(|set| &set.messages);
        for message in record.messages.iter().chain(more) {
            self.record(message);
        }
    }

    fn message(&mut self, id: &str, counts: Counts, record: &Record<'_>) {
        let model = record.model.as_deref().map(|model| {
            if !self.models.contains_key(model) {
                self.models.insert(model.to_owned(), model.into());
            }
            Arc::clone(&self.models[model])
        });
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        match self.known.entry(hasher.finish()) {
            std::collections::hash_map::Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                known.counts = counts;
                known.model = model.or(known.model.take());
            }
            std::collections::hash_map::Entry::Vacant(entry) => {
                let at = record.timestamp.as_deref().and_then(time::of_text).unwrap_or(self.modified);
                entry.insert(Known { at, model, counts });
            }
        }
    }
}
