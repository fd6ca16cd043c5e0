//! The built binary from outside: what it prints where, and how it ends.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "suite/agents.rs"]
mod agents;
#[path = "suite/bad_input.rs"]
mod bad_input;
#[path = "suite/configuration.rs"]
mod configuration;
#[path = "suite/gembridge.rs"]
mod gembridge;
#[path = "suite/help.rs"]
mod help;
#[path = "suite/log.rs"]
mod log;
#[path = "suite/sessions.rs"]
mod sessions;
#[path = "suite/terminal.rs"]
mod terminal;
#[path = "suite/trust.rs"]
mod trust;
#[path = "suite/turns.rs"]
mod turns;
