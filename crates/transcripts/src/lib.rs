//! The agents' own session files as unified messages.
//!
//! [`Library`] finds sessions below folders that the caller names; [`read`] turns one into messages; [`spent`] counts the
//! tokens of one without making messages. All only read, and open nothing but session files: never a login. What is damaged
//! is reported by place and never stops the rest. An [`Index`] in a file of the caller's finds words in all of them.
//!
//! Knows no front end, no driver and no process, and reads no environment.

mod agent;
mod blocks;
mod claude;
mod codex;
mod damage;
mod files;
#[cfg(test)]
mod fuzz;
mod gemini;
mod index;
mod json;
mod library;
mod lines;
mod opencode;
mod output;
mod qwen;
mod session;
mod spending;
mod summary;
mod time;
mod uuid_record;

pub use agent::Agent;
pub use damage::Damage;
pub use index::{Hit, Index, IndexError, Query, Wanted};
pub use library::{FindError, Library, Root, Scan};
pub use output::{Piece, ReadOptions};
pub use session::{Facts, Located, Supplier, read};
pub use spending::{Counted, Spent, Tokens, spent};
pub use summary::{Summary, summarise};
