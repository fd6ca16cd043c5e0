//! The format for programs: one JSON object a line.

use serde_json::{Map, Value};

use super::record::{Record, word};

pub fn line(record: &Record) -> String {
    let mut object = Map::new();
    object.insert("time".to_owned(), format!("{:.6}", record.at).into());
    object.insert("level".to_owned(), word(record.level).into());
    object.insert("target".to_owned(), record.target.into());
    object.insert("message".to_owned(), record.message().into());
    insert_fields(&mut object, record.others());
    if !record.spans.is_empty() {
        let spans = record.spans.iter().map(|span| {
            let mut object = Map::from_iter([("name".to_owned(), Value::from(span.name))]);
            insert_fields(&mut object, span.fields.iter());
            Value::Object(object)
        });
        object.insert("spans".to_owned(), spans.collect());
    }
    format!("{}\n", Value::Object(object))
}

fn insert_fields<'a>(object: &mut Map<String, Value>, fields: impl Iterator<Item = (&'static str, &'a str)>) {
    let fields: Map<_, _> = fields.map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    if !fields.is_empty() {
        object.insert("fields".to_owned(), fields.into());
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::sample;
    use super::*;
    use crate::config::settings::Level;

    #[test]
    fn a_record_is_one_line_that_reads_back() {
        let line = line(&sample(Level::Info, "two\nlines \u{1b}[2J"));
        assert_eq!(line.matches('\n').count(), 1);
        assert!(!line.contains('\u{1b}'));
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["message"], "two\nlines \u{1b}[2J");
        assert_eq!(read["time"], "2026-01-02T03:04:05.678901Z");
        assert_eq!(read["level"], "info");
        assert_eq!(read["fields"]["agent"], "demo");
        assert_eq!(read["spans"][0]["fields"]["id"], "7");
    }
}
