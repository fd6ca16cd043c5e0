//! `gembridge connect` with the built binary: what an editor gets that starts it as its agent.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "serve/gateway.rs"]
#[expect(dead_code, reason = "shared with the tests of `serve`, which use the rest")]
mod gateway;
#[path = "serve/http.rs"]
#[expect(dead_code, reason = "shared with the tests of `serve`, which use the rest")]
mod http;
#[path = "connect/editor.rs"]
mod editor;
#[path = "connect/everyday.rs"]
mod everyday;
#[path = "connect/gone.rs"]
mod gone;
#[path = "connect/trust.rs"]
mod trust;
