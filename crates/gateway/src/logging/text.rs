//! The format for people: one compact line a record, nothing in it that a terminal would obey.

use std::fmt::Write as _;

use super::record::{Field, Record, word};
use crate::config::settings::Level;
use crate::terminal::escape;

pub fn line(record: &Record, is_coloured: bool) -> String {
    let paint = |colour: &str, text: &str| {
        if is_coloured { format!("\u{1b}[{colour}m{text}\u{1b}[0m") } else { text.to_owned() }
    };
    let at = paint("2", &format!("{:.3}", record.at));
    let level = paint(colour(record.level), &format!("{:5}", word(record.level)));
    let mut out = format!("{at} {level} ");
    for span in &record.spans {
        out.push_str(&paint("1", span.name));
        let fields = joined(&span.fields, ",");
        if !fields.is_empty() {
            write!(out, "{{{fields}}}").expect("writing to a String cannot fail");
        }
        out.push_str(": ");
    }
    out.push_str(&escape::line(&record.message));
    let fields = joined(&record.fields, " ");
    if !fields.is_empty() {
        write!(out, " {}", paint("2", &fields)).expect("writing to a String cannot fail");
    }
    out.push('\n');
    out
}

fn joined(fields: &[Field], separator: &str) -> String {
    let pairs = fields.iter().map(|field| format!("{}={}", field.name, escape::line(&field.value)));
    pairs.collect::<Vec<_>>().join(separator)
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
    use super::super::record::sample;
    use super::*;

    #[test]
    fn a_record_is_one_line_with_its_time_in_utc() {
        assert_eq!(
            line(&sample(Level::Warn, "it is slow"), false),
            "2026-01-02T03:04:05.678Z warn  turn{id=7}: it is slow agent=demo\n"
        );
        let coloured = line(&sample(Level::Error, "x"), true);
        assert!(coloured.contains("\u{1b}[31merror\u{1b}[0m"), "{coloured}");
    }

    #[test]
    fn s16_line_breaks_and_escapes_from_outside_come_out_escaped() {
        let mut record = sample(Level::Info, "model \r\n2026 error faked \u{1b}[2J");
        record.fields[0].value = "a\nb\u{9b}c".to_owned();
        let line = line(&record, false);
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        assert!(line.contains(r"model \r\n2026 error faked \u{1b}[2J agent=a\nb\u{9b}c"), "{line}");
    }
}
