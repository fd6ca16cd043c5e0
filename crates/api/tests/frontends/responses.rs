//! The Responses API over real HTTP and over a WebSocket, with agents that are played by the tests.

mod background;
mod errors;
mod golden;
mod socket;
mod state;
mod support;
mod tools;
