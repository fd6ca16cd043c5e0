//! What outlives the process: session records and their logs, in memory or on disk.
//!
//! Knows no front end, no driver and no agent: it keeps what the core's [`Store`](gembridge_core::store::Store) hands it.

mod continuity;
mod disk;
mod memory;

pub use disk::{DiskOptions, DiskStore, Retention, Retired};
pub use memory::MemoryStore;
