//! The front end for other agents, in both versions of the protocol.

mod card;
mod confirmation;
mod load;
mod requests;
pub mod support;
mod tasks;
mod tools;
