//! How a line of the log looks: a JSON object for programs, one compact line for people.
//!
//! The formats of `tracing-subscriber` are not used as they are: the names and the order of the JSON fields are documented,
//! and text from outside must not steer a terminal or fake a second line. Spans are not shown, since our code opens none.

use std::fmt::{self, Write as _};

use jiff::Timestamp;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::terminal::escape;

/// The name under which `tracing` keeps the message of an event.
const MESSAGE: &str = "message";

/// One JSON object a line.
pub struct Json {
    pub now: fn() -> Timestamp,
}

/// One compact line, nothing in it that a terminal would obey.
pub struct Text {
    pub is_coloured: bool,
    pub now: fn() -> Timestamp,
}

/// The line of something that the log says of itself, in both formats.
pub fn notice(message: &str, is_coloured: bool) -> (String, String) {
    let now = Timestamp::now();
    let object = serde_json::json!({
        "time": format!("{now:.6}"), "level": "warn", "target": "gembridge::logging", "message": message
    });
    let mut text = String::new();
    head(&mut text, now, Level::WARN, is_coloured).expect("writing to a String cannot fail");
    (format!("{object}\n"), format!("{text}{message}\n"))
}

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let line = serde_json::to_string(&Line { now: (self.now)(), event }).map_err(|_| fmt::Error)?;
        writeln!(out, "{line}")
    }
}

struct Line<'e> {
    now: Timestamp,
    event: &'e Event<'e>,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("time", &format_args!("{:.6}", self.now))?;
        object.serialize_entry("level", word(*self.event.metadata().level()))?;
        object.serialize_entry("target", self.event.metadata().target())?;
        let mut message = String::new();
        let mut has_fields = false;
        each(self.event, |name, value| match name {
            MESSAGE => value.push_to(&mut message),
            _ => has_fields = true,
        });
        object.serialize_entry("message", &message)?;
        if has_fields {
            object.serialize_entry("fields", &Fields(self.event))?;
        }
        object.end()
    }
}

/// All fields of an event but its message.
struct Fields<'e>(&'e Event<'e>);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        let mut written = Ok(());
        each(self.0, |name, value| {
            if name != MESSAGE && written.is_ok() {
                written = object.serialize_entry(name, &value);
            }
        });
        written?;
        object.end()
    }
}

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = String::with_capacity(256);
        head(&mut line, (self.now)(), *event.metadata().level(), self.is_coloured)?;
        let mut pairs = String::new();
        each(event, |name, value| match name {
            MESSAGE => value.push_harmless(&mut line),
            _ => push_pair(&mut pairs, name, &value),
        });
        if !pairs.is_empty() {
            line.push(' ');
            paint(&mut line, self.is_coloured, FAINT)?;
            line.push_str(&pairs);
            paint(&mut line, self.is_coloured, PLAIN)?;
        }
        writeln!(out, "{line}")
    }
}

fn push_pair(out: &mut String, name: &str, value: &Value<'_>) {
    if !out.is_empty() {
        out.push(' ');
    }
    out.extend([name, "="]);
    value.push_harmless(out);
}

/// Time and level, as a line for people begins.
fn head(out: &mut String, now: Timestamp, level: Level, is_coloured: bool) -> fmt::Result {
    paint(out, is_coloured, FAINT)?;
    write!(out, "{now:.3}")?;
    paint(out, is_coloured, PLAIN)?;
    out.push(' ');
    paint(out, is_coloured, colour(level))?;
    write!(out, "{:5}", word(level))?;
    paint(out, is_coloured, PLAIN)?;
    out.push(' ');
    Ok(())
}

const PLAIN: &str = "0";
const FAINT: &str = "2";

fn paint(out: &mut String, is_coloured: bool, code: &str) -> fmt::Result {
    if is_coloured { write!(out, "\u{1b}[{code}m") } else { Ok(()) }
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "31",
        Level::WARN => "33",
        Level::INFO => "32",
        _ => "34",
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        _ => "debug",
    }
}

/// What a field says. Numbers stay numbers, in JSON too.
enum Value<'v> {
    Text(&'v str),
    Debug(&'v dyn fmt::Debug),
    Unsigned(u64),
    Signed(i64),
    Real(f64),
    Flag(bool),
}

impl Value<'_> {
    fn push_to(&self, out: &mut String) {
        let written = match self {
            Self::Text(text) => out.write_str(text),
            Self::Debug(value) => write!(out, "{value:?}"),
            Self::Unsigned(number) => write!(out, "{number}"),
            Self::Signed(number) => write!(out, "{number}"),
            Self::Real(number) => write!(out, "{number:?}"),
            Self::Flag(flag) => write!(out, "{flag}"),
        };
        written.expect("writing to a String cannot fail");
    }

    /// With everything escaped that would steer a terminal or end the line.
    fn push_harmless(&self, out: &mut String) {
        let start = out.len();
        self.push_to(out);
        // Nearly all of it is plain, which is soon seen byte by byte.
        if !out[start..].bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            let escaped = escape::line(&out[start..]).into_owned();
            out.replace_range(start.., &escaped);
        }
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Debug(value) => serializer.collect_str(&format_args!("{value:?}")),
            Self::Unsigned(number) => serializer.serialize_u64(number),
            Self::Signed(number) => serializer.serialize_i64(number),
            Self::Real(number) => serializer.serialize_f64(number),
            Self::Flag(flag) => serializer.serialize_bool(flag),
        }
    }
}

fn each(event: &Event<'_>, act: impl FnMut(&'static str, Value<'_>)) {
    event.record(&mut Each(act));
}

/// Hands on every field with its value.
struct Each<F>(F);

impl<F: FnMut(&'static str, Value<'_>)> Visit for Each<F> {
    fn record_str(&mut self, field: &Field, value: &str) {
        (self.0)(field.name(), Value::Text(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        (self.0)(field.name(), Value::Unsigned(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        (self.0)(field.name(), Value::Signed(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        (self.0)(field.name(), Value::Real(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        (self.0)(field.name(), Value::Flag(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        (self.0)(field.name(), Value::Debug(value));
    }
}

#[cfg(test)]
mod tests;
