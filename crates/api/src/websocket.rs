//! The WebSocket protocol (RFC 6455) on a connection that HTTP has handed over: the handshake, the frames, and a socket that reads
//! and writes at the same time. An idle one holds no buffer.

mod frame;
#[cfg(test)]
mod fuzz;
mod handshake;
mod intake;
mod socket;

pub use frame::write_header;
pub use handshake::{NotAnUpgrade, Offer};
pub use socket::{Arrived, CloseCode, Received, WebSocket};
