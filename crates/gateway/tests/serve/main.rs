//! `gembridge serve` from outside: the built binary, real sockets, the demo agent and the fake agent.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "../support/support.rs"]
#[expect(dead_code, reason = "shared by all suites of this crate; each uses a part")]
mod support;

mod a2a;
mod a2a_agent;
mod a2a_gemini;
mod conversations;
mod drain;
mod first_run;
mod headless;
mod health;
mod isolation;
mod key_file;
mod keys;
mod load;
mod notify;
mod operations;
mod ops;
mod owners;
mod printed;
mod refusals;
mod reload;
mod retention;
mod routes;
mod secrets;
mod soak;
mod tickets;
