//! The WebSocket protocol (RFC 6455) on a connection that HTTP has handed over: the handshake, the frames, and a socket that
//! reads and writes at the same time.
//!
//! Our own and not a library's, since an idle socket holds no buffer and one encoded batch is appended as it is to a
//! thousand sockets (`ws-bridge` of the benches). Held against the Autobahn suite by `examples/websocket_echo.rs`: of its 266
//! cases without compression and binary echo none fails. Four are "non-strict": UTF-8 is checked when a message is whole,
//! which the standard allows.

mod frame;
#[cfg(test)]
mod fuzz;
mod handshake;
mod intake;
mod socket;

pub use frame::write_header;
pub use handshake::{NotAnUpgrade, Offer};
pub use socket::{Arrived, CloseCode, Received, WebSocket};
