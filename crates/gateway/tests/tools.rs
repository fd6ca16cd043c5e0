//! Tools of clients through the built binary: calls that wait, agents that make several, clients that leave, crashes.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "tools/agents.rs"]
mod agents;
#[path = "tools/calls.rs"]
mod calls;
#[path = "tools/departures.rs"]
mod departures;
#[expect(dead_code, reason = "the suite of `serve` uses all of it")]
#[path = "serve/gateway.rs"]
mod gateway;
#[expect(dead_code, reason = "the suite of `serve` uses all of it")]
#[path = "serve/http.rs"]
mod http;
#[path = "tools/memory.rs"]
mod memory;
#[path = "tools/shim.rs"]
mod shim;
#[path = "tools/talk.rs"]
mod talk;
