//! The WebSocket of `gembridge serve` from outside: the built binary, the demo agent and the fake agent.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "../support/support.rs"]
#[expect(dead_code, reason = "shared by all suites of this crate; each uses a part")]
mod support;

mod admin;
mod agent_sessions;
mod demo;
mod faults;
mod guests;
mod hostile;
mod settings;
