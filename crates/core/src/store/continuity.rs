//! The numbering that every log keeps: from 1, without gaps.

use super::StoreError;
use crate::log::LogEntry;

/// Refuses a batch that does not go on at `next`.
pub fn check(entries: &[LogEntry], next: u64) -> Result<(), StoreError> {
    let numbers = entries.iter().map(|entry| entry.seq.0);
    match numbers.zip(next..).find(|(found, expected)| found != expected) {
        None => Ok(()),
        Some((found, expected)) => Err(StoreError::Refused(format!(
            "entry {found} cannot be stored where entry {expected} belongs; the log has no gaps"
        ))),
    }
}
