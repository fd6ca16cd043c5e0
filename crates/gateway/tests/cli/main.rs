//! The built binary from outside: what it prints where, and how it ends.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "../support/support.rs"]
#[expect(dead_code, reason = "shared by all suites of this crate; each uses a part")]
mod support;

mod agents;
mod bad_input;
mod configuration;
mod help;
mod log;
mod real_agents;
mod session_search;
mod sessions;
mod terminal;
mod trust;
mod turns;
