//! What outlives the process: session records and their logs on disk.
//!
//! Knows no front end, no driver and no agent: it keeps what the core's [`Store`](gembridge_core::store::Store) hands it.

mod disk;

pub use disk::{DiskOptions, DiskReader, DiskStore, Retention};
