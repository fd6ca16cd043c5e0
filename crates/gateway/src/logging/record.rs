//! One thing that was logged, before it is written in any format.

use jiff::Timestamp;

use crate::config::settings::Level;

#[derive(Clone, Debug)]
pub struct Record {
    pub at: Timestamp,
    pub level: Level,
    pub target: &'static str,
    pub message: String,
    pub fields: Vec<Field>,
    /// The spans around it, outermost first.
    pub spans: Vec<Span>,
}

/// What belongs into the audit as well; below a warning, nowhere else.
pub const AUDIT: &str = "gembridge::audit";

impl Record {
    pub fn is_for_audit_alone(&self) -> bool {
        self.target == AUDIT && self.level > Level::Warn
    }
}

#[derive(Clone, Debug)]
pub struct Span {
    pub name: &'static str,
    pub fields: Vec<Field>,
}

#[derive(Clone, Debug)]
pub struct Field {
    pub name: &'static str,
    pub value: String,
}

pub fn word(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
    }
}

#[cfg(test)]
pub fn sample(level: Level, message: &str) -> Record {
    Record {
        at: "2026-01-02T03:04:05.678901Z".parse().unwrap(),
        level,
        target: "gembridge::app",
        message: message.to_owned(),
        fields: vec![Field { name: "agent", value: "demo".to_owned() }],
        spans: vec![Span { name: "turn", fields: vec![Field { name: "id", value: "7".to_owned() }] }],
    }
}
