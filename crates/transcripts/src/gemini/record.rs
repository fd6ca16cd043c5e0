//! The records of a session, applied in their order. A record is kept as its text and parsed when it is rendered: most are
//! replaced by a later version of the same message before that.

use std::collections::{HashMap, HashSet};

use gembridge_unified::{Original, UnifiedUsage};
use serde_json::value::RawValue;

use crate::json::{Json, RawFields};
use crate::session::Facts;

/// A message as it was written, with the fields of all its versions.
pub(super) struct Record {
    fields: Vec<(Box<str>, Box<RawValue>)>,
    /// Where its last version stands; `None` in a file that is one object.
    pub line: Option<u64>,
}

impl Record {
    fn of(fields: RawFields<'_>, line: Option<u64>) -> Self {
        let fields = fields.0.into_iter().map(|(name, value)| (Box::from(&*name), value.to_owned()));
        Self { fields: fields.collect(), line }
    }

    /// The text of a field.
    fn raw(&self, name: &str) -> Option<&str> {
        // Of two fields with one name the later counts.
        self.fields.iter().rev().find(|(known, _)| &**known == name).map(|(_, value)| value.get())
    }

    /// A field that is parsed for this; null where there is none.
    pub fn field(&self, name: &str) -> serde_json::Result<Json<'_>> {
        self.raw(name).map_or(Ok(Json::Null), Json::of)
    }

    /// The same where a field that cannot be parsed is as good as none.
    pub fn get(&self, name: &str) -> Json<'_> {
        self.field(name).unwrap_or_default()
    }

    fn remove(&mut self, name: &str) -> Option<Box<RawValue>> {
        let place = self.fields.iter().rposition(|(known, _)| &**known == name)?;
        Some(self.fields.remove(place).1)
    }

    fn put(&mut self, name: &str, value: Box<RawValue>) {
        match self.fields.iter_mut().rfind(|(known, _)| &**known == name) {
            Some((_, old)) => *old = value,
            None => self.fields.push((name.into(), value)),
        }
    }

    /// The record again, in one line; its values byte for byte where they are in one line.
    pub fn original(&self) -> Original {
        let size = self.fields.iter().map(|(name, value)| name.len() + value.get().len() + 8).sum();
        let mut text = String::with_capacity(size);
        for (name, value) in &self.fields {
            text.push(if text.is_empty() { '{' } else { ',' });
            text.push_str(&Json::Text((&**name).into()).to_string());
            text.push(':');
            // Objects of older versions are written over many lines, and an export has a message a line.
            match memchr::memchr2(b'\n', b'\r', value.get().as_bytes()) {
                Some(_) => text.push_str(&Json::of(value.get()).unwrap_or_default().to_string()),
                None => text.push_str(value.get()),
            }
        }
        text.push_str(if text.is_empty() { "{}" } else { "}" });
        Original::Text(text.into())
    }
}

/// A session up to some record.
#[derive(Default)]
pub(super) struct Conversation {
    pub facts: Facts,
    /// The ids of the messages that stand, in their order.
    order: Vec<String>,
    /// The same, to ask whether one stands.
    stands: HashSet<String>,
    /// Every message that ever stood: a rebuilt one takes from its earlier version what the new one lacks.
    known: HashMap<String, Record>,
    has_header: bool,
}

/// What a rebuilt message may have lost: these fields are written once and are gone after the session was resumed.
const KEPT: [&str; 5] = ["toolCalls", "tokens", "model", "thoughts", "displayContent"];

impl Conversation {
    /// A session that is one object.
    pub fn of_object(object: &RawFields<'_>) -> Self {
        let mut conversation = Self::default();
        conversation.header(object, None);
        conversation
    }

    pub fn has_header(&self) -> bool {
        self.has_header
    }

    /// Whether this copy of a session tells more than another.
    pub fn outweighs(&self, other: &Self) -> bool {
        let weight = |conversation: &Self| (conversation.known.len(), conversation.facts.updated);
        weight(self) > weight(other)
    }

    /// Applies one line. The order of the questions is Gemini CLI's own.
    pub fn record(&mut self, record: RawFields<'_>, line: u64) {
        if let Some(id) = record.text("$rewindTo") {
            self.rewind_to(&id);
        } else if let Some(id) = record.text("id") {
            self.upsert(id, record, Some(line));
        } else if let Some(change) = record.get("$set") {
            self.change(change, line);
        } else if record.get("sessionId").is_some() && record.get("projectHash").is_some() {
            self.header(&record, Some(line));
        }
    }

    /// The messages that stand.
    pub fn standing(&self) -> impl Iterator<Item = &Record> {
        self.order.iter().filter_map(|id| self.known.get(id))
    }

    /// The messages that were dropped.
    pub fn dropped(&self) -> impl Iterator<Item = &Record> {
        self.known.iter().filter(|(id, _)| !self.stands.contains(*id)).map(|(_, record)| record)
    }

    /// The tokens of every message that ever stood, each counted once.
    pub fn spent(&self) -> UnifiedUsage {
        let mut spent = UnifiedUsage::default();
        for usage in self.known.values().filter_map(usage) {
            spent.add(&usage);
        }
        spent
    }

    /// The message and everything after it are taken back; an id that does not stand takes back all.
    fn rewind_to(&mut self, id: &str) {
        let place = self.order.iter().position(|known| known == id).unwrap_or(0);
        for gone in self.order.drain(place..) {
            self.stands.remove(&gone);
        }
    }

    /// A later version replaces an earlier one in its place.
    fn upsert(&mut self, id: String, message: RawFields<'_>, line: Option<u64>) {
        let mut new = Record::of(message, line);
        self.facts.seen_at(new.get("timestamp").millis());
        if let Some(mut old) = self.known.remove(&id) {
            for field in KEPT {
                let is_lost = new.raw(field).is_none_or(is_empty);
                if is_lost && let Some(value) = old.remove(field) {
                    new.put(field, value);
                }
            }
            // Rebuilding gives old messages the time of the rebuilding.
            if let Some(first) = old.remove("timestamp") {
                new.put("timestamp", first);
            }
        }
        if self.stands.insert(id.clone()) {
            self.order.push(id.clone());
        }
        self.known.insert(id, new);
    }

    fn change(&mut self, change: &RawValue, line: u64) {
        let Ok(change) = serde_json::from_str::<RawFields<'_>>(change.get()) else { return };
        if let Some(messages) = change.list("messages") {
            self.order.clear();
            self.stands.clear();
            self.upsert_all(&messages, Some(line));
        }
        self.metadata(&change);
    }

    /// The first line, which resuming within the same minute writes again.
    fn header(&mut self, header: &RawFields<'_>, line: Option<u64>) {
        self.has_header = true;
        self.upsert_all(&header.list("messages").unwrap_or_default(), line);
        self.metadata(header);
    }

    fn upsert_all(&mut self, messages: &[&RawValue], line: Option<u64>) {
        for message in messages {
            if let Ok(message) = serde_json::from_str::<RawFields<'_>>(message.get())
                && let Some(id) = message.text("id")
            {
                self.upsert(id, message, line);
            }
        }
    }

    fn metadata(&mut self, fields: &RawFields<'_>) {
        for field in ["startTime", "lastUpdated"] {
            self.facts.seen_at(fields.parsed(field).millis());
        }
        if let Some(summary) = fields.text("summary").filter(|summary| !summary.is_empty()) {
            self.facts.title = Some(summary);
        }
        if let Json::List(folders) = fields.parsed("directories")
            && let Some(folder) = folders.first().and_then(Json::as_str)
        {
            self.facts.project = Some(folder.into());
        }
    }
}

/// Null, or a list without items.
fn is_empty(value: &str) -> bool {
    let inside = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    value == "null" || inside.is_some_and(|items| items.trim().is_empty())
}

/// Tokens as Gemini CLI counts them: its input includes what was cached, its output leaves thoughts out.
pub(super) fn usage(message: &Record) -> Option<UnifiedUsage> {
    let tokens = message.get("tokens");
    tokens.is_object().then(|| UnifiedUsage {
        input_tokens: tokens["input"].as_u64(),
        output_tokens: tokens["output"].as_u64(),
        thought_tokens: tokens["thoughts"].as_u64(),
        total_tokens: tokens["total"].as_u64(),
        cache_creation_tokens: None,
        cache_read_tokens: tokens["cached"].as_u64(),
    })
}
