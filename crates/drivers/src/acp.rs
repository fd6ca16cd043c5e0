//! The driver for agents that speak the Agent Client Protocol on stdio.
//!
//! Own transport over raw lines: what the agent sends is kept as bytes, and only what must be understood is read.
//! Read in this order: [`driver`] (which process), [`launch`] (how it starts), [`open`] (how a session begins),
//! [`session`] (what the core does with it), [`connection`] and [`router`] (what the agent says).

mod arrivals;
mod births;
mod connection;
mod decode;
mod driver;
mod encode;
mod error;
mod hands;
mod launch;
mod open;
mod process;
mod repeat;
mod router;
mod session;
mod table;
mod wire;

pub use driver::{AcpDriver, ProcessStatus, Spares};
pub use launch::{AcpSetup, Home, greet};
