//! Unmodified client libraries against the built binary: with the demo agent, the real Gemini CLI and the fake agent.
//! What they do and expect stands in `tests/clients`.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "../support/support.rs"]
#[expect(dead_code, reason = "shared by all suites of this crate; each uses a part")]
mod support;

mod a2a;
mod codex;
mod coding_programs;
mod departures;
mod documents;
mod errors;
mod everyday;
mod launch;
mod messages;
mod ollama;
mod responses;
mod tools;
