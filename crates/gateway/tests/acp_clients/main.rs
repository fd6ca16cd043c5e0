//! Unmodified ACP clients against the built binary: with the demo agent and with the real Gemini CLI. What they do and
//! expect stands in `tests/clients`; what goes over the wire is held against the protocol's published schema.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "../support/support.rs"]
#[expect(dead_code, reason = "shared by all suites of this crate; each uses a part")]
mod support;

mod libraries;
mod published;
mod schema;
