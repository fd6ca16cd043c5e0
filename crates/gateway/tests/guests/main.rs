//! What a guest, a key without the operator's rights, can make the real agents do: Claude Code, Codex, OpenCode and the
//! Gemini CLI behind the built binary, on fakes of the models they ask. The fake agent shows what reaches an agent at all.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "../support/support.rs"]
#[expect(dead_code, reason = "shared by all suites of this crate; each uses a part")]
mod support;

mod commands;
mod files;
mod homes;
mod methods;
mod modes;
mod server;
