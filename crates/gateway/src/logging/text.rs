//! The format for people: one compact line a record, nothing in it that a terminal would obey.

use std::fmt::Write as _;

use super::record::{Record, Value, word};
use crate::config::settings::Level;
use crate::terminal::escape;

/// Near what a line takes.
const LINE: usize = 256;

/// Adds the line of a record to those before it.
pub fn line(out: &mut String, record: &Record, is_coloured: bool) {
    out.reserve(LINE);
    let paint = |out: &mut String, colour: &str| {
        if is_coloured {
            out.extend(["\u{1b}[", colour, "m"]);
        }
    };
    paint(out, "2");
    write!(out, "{:.3}", record.at).expect("writing to a String cannot fail");
    paint(out, PLAIN);
    out.push(' ');
    paint(out, colour(record.level));
    write!(out, "{:5}", word(record.level)).expect("writing to a String cannot fail");
    paint(out, PLAIN);
    out.push(' ');
    for span in &record.spans {
        paint(out, "1");
        out.push_str(span.name);
        paint(out, PLAIN);
        let mut mark = "{";
        for (name, value) in span.fields.iter() {
            pair(out, mark, name, value);
            mark = ",";
        }
        out.push_str(if mark == "," { "}: " } else { ": " });
    }
    harmless(out, record.message());
    let mut others = record.others().peekable();
    if others.peek().is_some() {
        out.push(' ');
        paint(out, "2");
        let mut mark = "";
        for (name, value) in others {
            pair(out, mark, name, value);
            mark = " ";
        }
        paint(out, PLAIN);
    }
    out.push('\n');
}

/// Ends a colour.
const PLAIN: &str = "0";

fn pair(out: &mut String, mark: &str, name: &str, value: Value<&str>) {
    out.extend([mark, name, "="]);
    let written = match value {
        Value::Text(text) => return harmless(out, text),
        Value::Unsigned(number) => write!(out, "{number}"),
        Value::Signed(number) => write!(out, "{number}"),
        Value::Real(number) => write!(out, "{number:?}"),
        Value::Flag(flag) => write!(out, "{flag}"),
    };
    written.expect("writing to a String cannot fail");
}

/// Adds text from outside. Nearly all of it is plain, which is soon seen byte by byte.
fn harmless(out: &mut String, text: &str) {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        out.push_str(text);
    } else {
        out.push_str(&escape::line(text));
    }
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::Error => "31",
        Level::Warn => "33",
        Level::Info => "32",
        Level::Debug => "34",
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Fields, sample};
    use super::*;

    fn written(record: &Record, is_coloured: bool) -> String {
        let mut out = String::new();
        line(&mut out, record, is_coloured);
        out
    }

    #[test]
    fn a_record_is_one_line_with_its_time_in_utc() {
        assert_eq!(
            written(&sample(Level::Warn, "it is slow"), false),
            "2026-01-02T03:04:05.678Z warn  turn{id=7}: it is slow agent=demo\n"
        );
        let coloured = written(&sample(Level::Error, "x"), true);
        assert!(coloured.contains("\u{1b}[31merror\u{1b}[0m"), "{coloured}");
    }

    #[test]
    fn numbers_and_flags_stand_as_people_write_them() {
        let mut record = sample(Level::Info, "x");
        record.fields.put("status", Value::Unsigned(200));
        record.fields.put("ms", Value::Real(12.0));
        record.fields.put("stream", Value::Flag(false));
        let line = written(&record, false);
        assert!(line.ends_with("x agent=demo status=200 ms=12.0 stream=false\n"), "{line}");
    }

    #[test]
    fn s16_line_breaks_and_escapes_from_outside_come_out_escaped() {
        let mut record = sample(Level::Info, "model \r\n2026 error faked \u{1b}[2J");
        record.fields.update(&Fields::from_iter([("agent", "a\nb\u{9b}c")]));
        let line = written(&record, false);
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        assert!(line.contains(r"model \r\n2026 error faked \u{1b}[2J agent=a\nb\u{9b}c"), "{line}");
    }
}
