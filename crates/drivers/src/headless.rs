//! The driver for agents that run one turn per process: the prompt on standard input, events as lines of JSON on standard
//! output, then the end of the process.
//!
//! Read in this order: [`driver`] (sessions), [`session`] (what the core does with one), [`turn`] (one process), `wire`,
//! `decode`, `encode` and `error` (what it is told and says). [`execute`] is the same for a program that wants one turn and
//! nothing else.

mod capabilities;
mod decode;
mod driver;
mod encode;
mod error;
mod execute;
mod extract;
#[cfg(test)]
mod fuzz;
mod session;
mod turn;
mod wire;

pub use capabilities::{Capabilities, capabilities};
pub(crate) use decode::{tool_kind, tool_title};
pub use driver::HeadlessDriver;
pub use execute::{ExecuteRequest, Executed, Observer, SessionChoice, execute};
pub use extract::extract_json;
