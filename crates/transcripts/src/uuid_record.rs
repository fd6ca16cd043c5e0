//! Lines of a log that have `uuid` and `timestamp`, as Claude Code and Qwen Code write them.

use gembridge_unified::{Body, Role, UnifiedMessage};

use crate::output::Output;

/// The message of such a line. Model, usage and the original line are for its format to add.
pub(crate) fn message(
    uuid: Option<&str>,
    at: Option<u64>,
    role: Role,
    content: Body,
    out: &Output<'_>,
) -> UnifiedMessage {
    UnifiedMessage {
        id: uuid.unwrap_or_default().to_owned(),
        role,
        content,
        timestamp: at.unwrap_or(0),
        tool: out.agent.name().to_owned(),
        model: None,
        usage: None,
        original: None,
    }
}
