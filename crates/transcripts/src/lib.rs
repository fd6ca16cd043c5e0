//! The agents' own session files as unified messages.
//!
//! [`Library`] finds sessions below folders that the caller names; [`read`] turns one into messages. Both only read, and
//! open nothing but session files: never a login. What is damaged is reported by place and never stops the rest.
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
mod library;
mod lines;
mod opencode;
mod output;
mod qwen;
mod session;
mod summary;
mod time;
mod uuid_record;

pub use agent::Agent;
pub use damage::Damage;
pub use library::{FindError, Library, Root, Scan};
pub use output::{Piece, ReadOptions};
pub use session::{Facts, Located, read};
pub use summary::{Summary, summarise};
