//! A server with played agents, and a client that speaks plain HTTP.

pub mod http;
pub mod server;
pub mod tools;

use bytes::Bytes;
use gembridge_core::driver::Signal;
use gembridge_core::model::{Event, Text};
pub use gembridge_core::test_support::{done, done_with, stopped, text, thought, update};

/// Text as an agent's JSON carries it.
pub fn escaped(body: &'static str) -> Signal {
    update(Event::Text(Text::escaped(Bytes::from_static(body.as_bytes()))))
}
