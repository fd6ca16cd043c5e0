//! The records of a session, applied in their order.

use std::collections::{HashMap, HashSet};

use gembridge_unified::UnifiedUsage;
use serde_json::{Map, Value};

use crate::session::Facts;
use crate::time;

/// A message as it was written, with the fields of all its versions.
pub(super) type Record = Map<String, Value>;

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
    pub fn of_object(object: Value) -> Self {
        let mut conversation = Self::default();
        conversation.header(object);
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
    pub fn record(&mut self, record: Value) {
        if let Some(id) = record.get("$rewindTo").and_then(Value::as_str) {
            self.rewind_to(id);
        } else if record.get("id").is_some_and(Value::is_string) {
            self.upsert(record);
        } else if let Some(change) = record.get("$set") {
            self.change(change.clone());
        } else if record.get("sessionId").is_some() && record.get("projectHash").is_some() {
            self.header(record);
        }
    }

    /// The messages that stand.
    pub fn standing(&self) -> impl Iterator<Item = &Record> {
        self.order.iter().filter_map(|id| self.known.get(id))
    }

    /// Every message, those that were dropped first.
    pub fn all(&self) -> impl Iterator<Item = &Record> {
        let dropped = self.known.iter().filter(|(id, _)| !self.stands.contains(*id)).map(|(_, record)| record);
        dropped.chain(self.standing())
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
    fn upsert(&mut self, message: Value) {
        let Value::Object(mut new) = message else { return };
        let Some(id) = new.get("id").and_then(Value::as_str).map(str::to_owned) else { return };
        self.facts.seen_at(new.get("timestamp").and_then(time::millis));
        if let Some(mut old) = self.known.remove(&id) {
            for field in KEPT {
                let is_lost = new.get(field).is_none_or(is_empty);
                if is_lost && let Some(value) = old.remove(field) {
                    new.insert(field.to_owned(), value);
                }
            }
            // Rebuilding gives old messages the time of the rebuilding.
            if let Some(first) = old.remove("timestamp") {
                new.insert("timestamp".to_owned(), first);
            }
        }
        if self.stands.insert(id.clone()) {
            self.order.push(id.clone());
        }
        self.known.insert(id, new);
    }

    fn change(&mut self, change: Value) {
        let Value::Object(mut change) = change else { return };
        if let Some(Value::Array(messages)) = change.remove("messages") {
            self.order.clear();
            self.stands.clear();
            for message in messages {
                self.upsert(message);
            }
        }
        self.metadata(&change);
    }

    /// The first line, which resuming within the same minute writes again.
    fn header(&mut self, header: Value) {
        let Value::Object(mut header) = header else { return };
        self.has_header = true;
        if let Some(Value::Array(messages)) = header.remove("messages") {
            for message in messages {
                self.upsert(message);
            }
        }
        self.metadata(&header);
    }

    fn metadata(&mut self, fields: &Record) {
        for field in ["startTime", "lastUpdated"] {
            self.facts.seen_at(fields.get(field).and_then(time::millis));
        }
        if let Some(summary) = fields.get("summary").and_then(Value::as_str).filter(|summary| !summary.is_empty()) {
            self.facts.title = Some(summary.to_owned());
        }
        if let Some(folder) = fields.get("directories").and_then(|folders| folders[0].as_str()) {
            self.facts.project = Some(folder.into());
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Tokens as Gemini CLI counts them: its input includes what was cached, its output leaves thoughts out.
pub(super) fn usage(message: &Record) -> Option<UnifiedUsage> {
    let tokens = message.get("tokens").filter(|tokens| tokens.is_object())?;
    Some(UnifiedUsage {
        input_tokens: tokens["input"].as_u64(),
        output_tokens: tokens["output"].as_u64(),
        thought_tokens: tokens["thoughts"].as_u64(),
        total_tokens: tokens["total"].as_u64(),
        cache_creation_tokens: None,
        cache_read_tokens: tokens["cached"].as_u64(),
    })
}
