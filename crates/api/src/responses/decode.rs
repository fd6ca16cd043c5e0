//! A request of the wire as the core understands it. What cannot be honoured is refused by name, or reported back as
//! ignored; nothing is dropped in silence.

mod conversation;
mod options;
mod tools;

pub(super) use conversation::{Call, Conversation, conversation};
pub(super) use options::{RequestOptions, SCHEMA_PLACE, options, parse};
pub(super) use tools::{CalledTool, ToolKind, ToolNames};
