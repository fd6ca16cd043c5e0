//! The WebSocket of `gembridge serve` from outside: the built binary, the demo agent and the fake agent.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "ws/admin.rs"]
mod admin;
#[path = "ws/client.rs"]
mod client;
#[path = "ws/demo.rs"]
mod demo;
#[path = "ws/faults.rs"]
mod faults;
#[path = "serve/gateway.rs"]
#[expect(dead_code, reason = "shared with the tests of `serve`, which use the rest")]
mod gateway;
#[path = "ws/guests.rs"]
mod guests;
#[path = "ws/hostile.rs"]
mod hostile;
#[path = "serve/http.rs"]
#[expect(dead_code, reason = "shared with the tests of `serve`, which use the rest")]
mod http;
#[path = "ws/settings.rs"]
mod settings;
