//! Lines of a log that have `uuid` and `timestamp`, as Claude Code and Qwen Code write them.

use gembridge_unified::{Body, Role, UnifiedMessage};
use serde_json::Value;

use crate::output::Output;
use crate::time;

/// The message of such a line. Model, usage and the original record are for its format to add.
pub(crate) fn message(record: &Value, role: Role, content: Body, out: &Output<'_>) -> UnifiedMessage {
    UnifiedMessage {
        id: record["uuid"].as_str().unwrap_or_default().to_owned(),
        role,
        content,
        timestamp: time::millis(&record["timestamp"]).unwrap_or(0),
        tool: out.agent.name().to_owned(),
        model: None,
        usage: None,
        original: None,
    }
}
