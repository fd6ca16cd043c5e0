//! The built binary on bad days: signals, crashes, full disks, jumping clocks and hostile words, with the fake agent.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "../support/support.rs"]
#[expect(dead_code, reason = "shared by all suites of this crate; each uses a part")]
mod support;

mod busy_kills;
mod clock;
mod disk;
mod failures;
mod history;
mod kills;
mod refusals;
mod secrets;
mod trees;
