//! What could not be read, by place.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

/// A line or a file that could not be read. The rest was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    pub path: PathBuf,
    /// Counted from 1; absent where the file as a whole is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    pub reason: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(out, ":{line}")?;
        }
        write!(out, ": {}", self.reason)
    }
}
