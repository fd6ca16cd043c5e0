//! Unmodified client libraries against the built binary: with the demo agent, the real Gemini CLI and the fake agent.
//! What they do and expect stands in `tests/clients`.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "clients/departures.rs"]
mod departures;
#[path = "clients/documents.rs"]
mod documents;
#[path = "clients/errors.rs"]
mod errors;
#[path = "clients/everyday.rs"]
mod everyday;
#[expect(dead_code, reason = "the suite of `serve` uses all of it")]
#[path = "serve/gateway.rs"]
mod gateway;
#[expect(dead_code, reason = "the suite of `serve` uses all of it")]
#[path = "serve/http.rs"]
mod http;
#[path = "clients/script.rs"]
mod script;
#[path = "clients/tools.rs"]
mod tools;
