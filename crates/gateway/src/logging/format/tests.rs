//! Both formats, on what `tracing` hands to them.

use std::io;
use std::sync::{Arc, Mutex};

use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

use super::*;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Written {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn now() -> Timestamp {
    "2026-01-02T03:04:05.678901Z".parse().unwrap()
}

fn through(
    layer: impl Layer<tracing_subscriber::Registry> + Send + Sync,
    written: &Written,
    log: impl FnOnce(),
) -> String {
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
    String::from_utf8(std::mem::take(&mut written.0.lock().unwrap())).unwrap()
}

fn json(log: impl FnOnce()) -> String {
    let written = Written::default();
    let layer = tracing_subscriber::fmt::layer().event_format(Json { now });
    through(layer.with_writer(written.clone()), &written, log)
}

fn text(is_coloured: bool, log: impl FnOnce()) -> String {
    let written = Written::default();
    let layer = tracing_subscriber::fmt::layer().event_format(Text { is_coloured, now });
    through(layer.with_writer(written.clone()), &written, log)
}

#[test]
fn what_there_is_stands_in_one_order_and_what_there_is_not_is_left_out() {
    let start = r#"{"time":"2026-01-02T03:04:05.678901Z","level":"warn","target":"gembridge::app","message":"x""#;
    let line = json(|| tracing::warn!(target: "gembridge::app", agent = "demo", "x"));
    assert_eq!(line, format!("{start}{}\n", r#","fields":{"agent":"demo"}}"#));
    let line = json(|| tracing::warn!(target: "gembridge::app", "x"));
    assert_eq!(line, format!("{start}}}\n"));
}

#[test]
fn numbers_and_flags_are_those_of_json() {
    let line = json(|| tracing::info!(agent = "demo", status = 200, offset = -3, ms = 0.125, stream = true, "x"));
    let fields = r#""fields":{"agent":"demo","status":200,"offset":-3,"ms":0.125,"stream":true}"#;
    assert!(line.contains(fields), "{line}");
}

#[test]
fn a_record_is_one_line_that_reads_back() {
    let line = json(|| tracing::info!(agent = "demo", "two\nlines \u{1b}[2J"));
    assert_eq!(line.matches('\n').count(), 1);
    assert!(!line.contains('\u{1b}'));
    let read: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(read["message"], "two\nlines \u{1b}[2J");
    assert_eq!(read["time"], "2026-01-02T03:04:05.678901Z");
    assert_eq!(read["level"], "info");
    assert_eq!(read["fields"]["agent"], "demo");
}

#[test]
fn a_record_is_one_line_with_its_time_in_utc() {
    let line = text(false, || tracing::warn!(agent = "demo", "it is slow"));
    assert_eq!(line, "2026-01-02T03:04:05.678Z warn  it is slow agent=demo\n");
    let coloured = text(true, || tracing::error!("x"));
    assert!(coloured.contains("\u{1b}[31merror\u{1b}[0m"), "{coloured}");
}

#[test]
fn numbers_and_flags_stand_as_people_write_them() {
    let line = text(false, || tracing::info!(agent = "demo", status = 200, ms = 12.0, stream = false, "x"));
    assert!(line.ends_with("x agent=demo status=200 ms=12.0 stream=false\n"), "{line}");
}

#[test]
fn s16_line_breaks_and_escapes_from_outside_come_out_escaped() {
    let (message, agent) = ("model \r\n2026 error faked \u{1b}[2J", "a\nb\u{9b}c");
    let shown = r"model \r\n2026 error faked \u{1b}[2J agent=a\nb\u{9b}c";
    for line in [
        text(false, || tracing::info!(agent, "{message}")),
        text(false, || tracing::info!(agent = %agent, "{}", message)),
    ] {
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        assert!(line.contains(shown), "{line}");
    }
}

#[test]
fn what_the_log_says_of_itself_has_both_formats() {
    let (json, text) = notice("7 lines", false);
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&read["level"], &read["message"]), (&"warn".into(), &"7 lines".into()));
    assert!(text.ends_with(" warn  7 lines\n"), "{text}");
}
