//! The model: sessions, turns, events, and the log that is their truth.
//!
//! Knows no wire format, no HTTP, no process, no file and no product. Front ends and drivers meet here;
//! [`driver`], [`store`], [`directory`] and [`tool_host`] are the interfaces to what is outside.

pub mod model;
pub mod turn;
pub mod session;
pub mod exchange;
pub mod log;
pub mod driver;
pub mod store;
pub mod directory;
pub mod tool_host;
pub mod limit;
pub mod admission;
pub mod error;
#[cfg(feature = "test-support")]
pub mod test_support;

use std::future::Future;
use std::pin::Pin;

/// A boxed future, for the traits that are used as `dyn` between crates.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
