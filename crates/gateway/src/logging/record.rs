//! One thing that was logged, before it is written in any format.

use std::ops::Range;

use jiff::Timestamp;

use crate::config::settings::Level;

#[derive(Clone, Debug)]
pub struct Record {
    pub at: Timestamp,
    pub level: Level,
    pub target: &'static str,
    /// The message is among them.
    pub fields: Fields,
    /// The spans around it, outermost first.
    pub spans: Vec<Span>,
}

/// What belongs into the audit as well; below a warning, nowhere else.
pub const AUDIT: &str = "gembridge::audit";

impl Record {
    pub fn is_for_audit_alone(&self) -> bool {
        self.target == AUDIT && self.level > Level::Warn
    }

    pub fn message(&self) -> &str {
        self.fields.iter().find_map(|(name, value)| (name == MESSAGE).then_some(value)).unwrap_or_default()
    }

    /// All fields but the message.
    pub fn others(&self) -> impl Iterator<Item = (&'static str, &str)> + Clone {
        self.fields.iter().filter(|(name, _)| *name != MESSAGE)
    }
}

#[derive(Clone, Debug)]
pub struct Span {
    pub name: &'static str,
    pub fields: Fields,
}

/// The name under which `tracing` keeps what an event says.
pub const MESSAGE: &str = "message";

/// Names with their values, in order. All values stand in one text: every request is logged twice, and a text for each
/// field would cost more than all the rest of it.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    values: String,
    places: Vec<(&'static str, Range<usize>)>,
}

impl Fields {
    /// None yet, with room for so many short ones.
    pub fn with_room_for(count: usize) -> Self {
        Self { values: String::with_capacity(count * 16), places: Vec::with_capacity(count) }
    }

    /// Adds a value under a name that has none yet.
    pub fn put(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        let start = self.values.len();
        write(&mut self.values);
        self.places.push((name, start..self.values.len()));
    }

    /// What is newer takes the place of an older value of its name.
    pub fn update(&mut self, newer: &Self) {
        self.places.retain(|(name, _)| newer.iter().all(|(other, _)| other != *name));
        for (name, value) in newer.iter() {
            self.put(name, |values| values.push_str(value));
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> + Clone {
        self.places.iter().map(|(name, place)| (*name, &self.values[place.clone()]))
    }
}

impl<'v> FromIterator<(&'static str, &'v str)> for Fields {
    fn from_iter<I: IntoIterator<Item = (&'static str, &'v str)>>(pairs: I) -> Self {
        let mut fields = Self::default();
        for (name, value) in pairs {
            fields.put(name, |values| values.push_str(value));
        }
        fields
    }
}

pub fn word(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
    }
}

#[cfg(test)]
pub fn sample(level: Level, message: &str) -> Record {
    Record {
        at: "2026-01-02T03:04:05.678901Z".parse().unwrap(),
        level,
        target: "gembridge::app",
        fields: Fields::from_iter([(MESSAGE, message), ("agent", "demo")]),
        spans: vec![Span { name: "turn", fields: Fields::from_iter([("id", "7")]) }],
    }
}
