//! The driver for agents that speak the Agent Client Protocol on stdio.
//!
//! Own transport over raw lines: what the agent sends is kept as bytes, and only what must be understood is read.
//! Read in this order: [`driver`] (which process), [`launch`] (how it starts), [`open`] (how a session begins),
//! [`session`] (what the core does with it), [`connection`] and [`router`] (what the agent says).

mod driver;
pub(crate) mod fence;
pub(crate) mod launch;
mod open;
mod creation_times;
mod description;
mod session;
mod client_rights;
pub(crate) mod prompt_filter;
mod connection;
mod outbox;
mod router;
mod routing_table;
mod client_methods;
mod own_tools;
mod retry_dedup;
mod process;
mod decode;
mod encode;
mod error;
mod wire;
mod single_flight;
#[cfg(test)]
mod fuzz;

pub use driver::AcpDriver;
pub(crate) use launch::greet;
