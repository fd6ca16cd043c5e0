//! `gembridge connect` with the built binary: what an editor gets that starts it as its agent.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "../support/support.rs"]
#[expect(dead_code, reason = "shared by all suites of this crate; each uses a part")]
mod support;

mod editor;
mod everyday;
mod folders;
mod gone;
mod library;
mod trust;
