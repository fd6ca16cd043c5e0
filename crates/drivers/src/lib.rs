//! Drivers: code that speaks an agent protocol, one folder per protocol, and the data that names the agents.
//! They know sessions (core) and children (process), never front ends or who asked.

pub mod profile;
pub mod detect;
pub mod setup;
pub mod acp;
pub mod headless;
pub mod a2a;
pub mod workspace;
pub mod title;
