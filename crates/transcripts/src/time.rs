//! Times as the agents write them, in milliseconds since 1970.

use serde_json::Value;

/// A timestamp in RFC 3339, or a number of milliseconds.
pub(crate) fn millis(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => of_text(text),
        Value::Number(number) => number.as_u64(),
        _ => None,
    }
}

/// A timestamp in RFC 3339.
pub(crate) fn of_text(text: &str) -> Option<u64> {
    let time: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_millisecond()).ok()
}
