//! What the suites share: the binary in a home of its own, a running gateway, and clients for what it serves.

pub mod gateway;
pub mod home;
pub mod http;
pub mod messages;
pub mod real_agent;
pub mod run;
pub mod script;
pub mod terminal;
pub mod websocket;
