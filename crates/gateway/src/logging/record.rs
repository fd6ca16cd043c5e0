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
        let said = |(name, value)| match value {
            Value::Text(text) if name == MESSAGE => Some(text),
            _ => None,
        };
        self.fields.iter().find_map(said).unwrap_or_default()
    }

    /// All fields but the message.
    pub fn others(&self) -> impl Iterator<Item = (&'static str, Value<&str>)> + Clone {
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

/// What a field says. Numbers stay numbers until they are written, and for programs beyond that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<T> {
    Text(T),
    Unsigned(u64),
    Signed(i64),
    Real(f64),
    Flag(bool),
}

impl<T> Value<T> {
    fn map<U>(self, text: impl FnOnce(T) -> U) -> Value<U> {
        match self {
            Self::Text(of_it) => Value::Text(text(of_it)),
            Self::Unsigned(number) => Value::Unsigned(number),
            Self::Signed(number) => Value::Signed(number),
            Self::Real(number) => Value::Real(number),
            Self::Flag(flag) => Value::Flag(flag),
        }
    }
}

/// Names with their values, in order. All texts stand in one: every request is logged twice, and a text for each field
/// would cost more than all the rest of it.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    texts: String,
    values: Vec<(&'static str, Value<Range<usize>>)>,
}

impl Fields {
    /// None yet, with room for so many short ones.
    pub fn with_room_for(count: usize) -> Self {
        Self { texts: String::with_capacity(count * 16), values: Vec::with_capacity(count) }
    }

    /// Adds a value under a name that has none yet.
    pub fn put(&mut self, name: &'static str, value: Value<&str>) {
        let value = value.map(|text| {
            let start = self.texts.len();
            self.texts.push_str(text);
            start..self.texts.len()
        });
        self.values.push((name, value));
    }

    /// The same for a text that is written only now.
    pub fn put_text(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        let start = self.texts.len();
        write(&mut self.texts);
        self.values.push((name, Value::Text(start..self.texts.len())));
    }

    /// What is newer takes the place of an older value of its name.
    pub fn update(&mut self, newer: &Self) {
        self.values.retain(|(name, _)| newer.iter().all(|(other, _)| other != *name));
        for (name, value) in newer.iter() {
            self.put(name, value);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value<&str>)> + Clone {
        self.values.iter().map(|(name, value)| (*name, value.clone().map(|place| &self.texts[place])))
    }
}

impl<'v> FromIterator<(&'static str, &'v str)> for Fields {
    fn from_iter<I: IntoIterator<Item = (&'static str, &'v str)>>(pairs: I) -> Self {
        let mut fields = Self::default();
        for (name, value) in pairs {
            fields.put(name, Value::Text(value));
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
