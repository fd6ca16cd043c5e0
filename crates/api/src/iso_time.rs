//! A time as people and their tools write it.

use gembridge_core::model::Timestamp;

pub(crate) fn iso(at: Timestamp) -> String {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis).unwrap_or_default().to_string()
}
