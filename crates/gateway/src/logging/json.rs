//! The format for programs: one JSON object a line.

use jiff::Timestamp;
use serde::ser::{Serialize, SerializeMap as _, Serializer};

use super::record::{Record, Span, Value, word};

/// Adds the line of a record to those before it.
pub fn line(out: &mut Vec<u8>, record: &Record) {
    serde_json::to_writer(&mut *out, record).expect("text can be written to memory");
    out.push(b'\n');
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("time", &ToTheMicrosecond(self.at))?;
        object.serialize_entry("level", word(self.level))?;
        object.serialize_entry("target", self.target)?;
        object.serialize_entry("message", self.message())?;
        if self.others().next().is_some() {
            object.serialize_entry("fields", &Pairs(self.others()))?;
        }
        if !self.spans.is_empty() {
            object.serialize_entry("spans", &self.spans)?;
        }
        object.end()
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("name", self.name)?;
        if self.fields.iter().next().is_some() {
            object.serialize_entry("fields", &Pairs(self.fields.iter()))?;
        }
        object.end()
    }
}

/// Names and values, as an object.
struct Pairs<I>(I);

impl<'v, I: Iterator<Item = (&'static str, Value<&'v str>)> + Clone> Serialize for Pairs<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.clone())
    }
}

impl Serialize for Value<&str> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Unsigned(number) => serializer.serialize_u64(number),
            Self::Signed(number) => serializer.serialize_i64(number),
            Self::Real(number) => serializer.serialize_f64(number),
            Self::Flag(flag) => serializer.serialize_bool(flag),
        }
    }
}

struct ToTheMicrosecond(Timestamp);

impl Serialize for ToTheMicrosecond {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:.6}", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Fields, MESSAGE, sample};
    use super::*;
    use crate::config::settings::Level;

    fn written(record: &Record) -> String {
        let mut out = Vec::new();
        line(&mut out, record);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_there_is_stands_in_one_order_and_what_there_is_not_is_left_out() {
        let mut record = sample(Level::Warn, "x");
        let start = r#"{"time":"2026-01-02T03:04:05.678901Z","level":"warn","target":"gembridge::app","message":"x""#;
        let rest = r#","fields":{"agent":"demo"},"spans":[{"name":"turn","fields":{"id":"7"}}]}"#;
        assert_eq!(written(&record), format!("{start}{rest}\n"));
        record.fields = Fields::from_iter([(MESSAGE, "x")]);
        record.spans[0].fields = Fields::default();
        assert_eq!(written(&record), format!("{start}{}\n", r#","spans":[{"name":"turn"}]}"#));
        record.spans.clear();
        assert_eq!(written(&record), format!("{start}}}\n"));
    }

    #[test]
    fn numbers_and_flags_are_those_of_json() {
        let mut record = sample(Level::Info, "x");
        record.fields.put("status", Value::Unsigned(200));
        record.fields.put("offset", Value::Signed(-3));
        record.fields.put("ms", Value::Real(0.125));
        record.fields.put("stream", Value::Flag(true));
        let line = written(&record);
        let fields = r#""fields":{"agent":"demo","status":200,"offset":-3,"ms":0.125,"stream":true}"#;
        assert!(line.contains(fields), "{line}");
    }

    #[test]
    fn a_record_is_one_line_that_reads_back() {
        let line = written(&sample(Level::Info, "two\nlines \u{1b}[2J"));
        assert_eq!(line.matches('\n').count(), 1);
        assert!(!line.contains('\u{1b}'));
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["message"], "two\nlines \u{1b}[2J");
        assert_eq!(read["time"], "2026-01-02T03:04:05.678901Z");
        assert_eq!(read["level"], "info");
        assert_eq!(read["fields"]["agent"], "demo");
        assert_eq!(read["spans"][0]["fields"]["id"], "7");
    }
}
