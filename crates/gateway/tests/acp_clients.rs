//! Unmodified ACP clients against the built binary: with the demo agent and with the real Gemini CLI. What they do and
//! expect stands in `tests/clients`; what goes over the wire is held against the protocol's published schema.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "ws/client.rs"]
#[expect(dead_code, reason = "shared with the tests of the WebSocket, which use the rest")]
mod client;
#[path = "serve/gateway.rs"]
#[expect(dead_code, reason = "shared with the tests of `serve`, which use the rest")]
mod gateway;
#[path = "serve/http.rs"]
#[expect(dead_code, reason = "shared with the tests of `serve`, which use the rest")]
mod http;
#[path = "acp_clients/libraries.rs"]
mod libraries;
#[path = "acp_clients/published.rs"]
mod published;
#[path = "acp_clients/schema.rs"]
mod schema;
#[path = "clients/script.rs"]
#[expect(dead_code, reason = "shared with the tests of OpenAI's clients, which use the rest")]
mod script;
