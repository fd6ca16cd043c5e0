//! One format for every agent's conversation: Claude-shaped messages, folded from a session's log.
//!
//! Knows no file, no process and no HTTP. [`Fold`] gives lines as they become complete; a [`Report`] is the same
//! fold at its end.

mod content;
mod fold;
mod line;
mod message;
mod original;
mod tool;
pub mod tool_names;

pub use fold::{Context, Fold, Originals};
pub use line::{Delta, DeltaBody, Init, Line, Notice, Report, RunError, RunResult, Subtype, TurnUsage};
pub use message::{Block, Body, Role, Source, UnifiedMessage, UnifiedUsage};
pub use original::Original;
