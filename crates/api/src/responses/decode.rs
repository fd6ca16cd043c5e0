//! A request of the wire as the core understands it. What cannot be honoured is refused by name, or reported back as
//! ignored; nothing is dropped in silence.

mod conversation;
mod options;
mod tools;

pub(super) use conversation::{Call, Conversation, conversation};
pub(super) use options::{RequestOptions, SCHEMA_PLACE, options, parse};
pub(super) use tools::{CalledTool, ToolKind, ToolNames};

use bytes::Bytes;

use crate::dialect::Source;
use crate::problem::Problem;

/// Reads a request without answering it: the fields that have no effect.
pub fn understand(body: &Bytes) -> Result<Vec<String>, Problem> {
    let request = parse(body)?;
    let options = options(&request)?;
    conversation(&request, Source(body))?;
    Ok(options.ignored)
}
