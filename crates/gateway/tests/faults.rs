//! The built binary on bad days: signals, crashes, full disks, jumping clocks and hostile words, with the fake agent.
#![expect(clippy::disallowed_methods, reason = "a test of a binary starts it")]

#[path = "faults/clock.rs"]
mod clock;
#[path = "faults/disk.rs"]
mod disk;
#[path = "faults/failures.rs"]
mod failures;
#[path = "faults/history.rs"]
mod history;
#[path = "faults/home.rs"]
mod home;
#[path = "faults/kills.rs"]
mod kills;
#[path = "faults/refusals.rs"]
mod refusals;
#[path = "faults/running.rs"]
mod running;
#[path = "faults/secrets.rs"]
mod secrets;
#[path = "faults/trees.rs"]
mod trees;
