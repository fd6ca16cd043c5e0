//! The driver for agents that are A2A servers, of version 0.3 or 1.0: reached at an address, or started by us.
//!
//! Read in this order: `driver` (sessions), `servers` and
//! `server_process` (those that we start), `session` (what the core does with one), `turn` (one prompt until its end),
//! `http` (requests and streams), `card`, `wire`, `decode`, `encode` and `error` (what is said).

mod card;
mod decode;
mod driver;
mod encode;
mod error;
mod http;
mod server_process;
mod servers;
mod session;
mod turn;
mod wire;

pub use driver::A2aDriver;
