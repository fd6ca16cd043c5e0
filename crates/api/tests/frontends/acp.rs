//! The ACP API over a real WebSocket, spoken by a client that is not ours, with agents that are played by the tests.

mod asks;
mod attach;
mod frames;
mod handshake;
mod haste;
mod limits;
mod plain_clients;
mod prompts;
mod properties;
mod replay;
mod sessions;
mod slow_readers;
pub mod support;
mod unfinished;
mod watching;
