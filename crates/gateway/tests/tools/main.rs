//! Tools of clients through the built binary: calls that wait, agents that make several, clients that leave, crashes.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "../support/support.rs"]
#[expect(dead_code, reason = "shared by all suites of this crate; each uses a part")]
mod support;

mod real_agents;
mod calls;
mod conversation;
mod departures;
mod every_agent;
mod memory;
mod shim;
