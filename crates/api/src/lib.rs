//! Frontends: wire in, events out. One folder per dialect, all of the same shape.
//!
//! Knows the core and nothing else of ours: no driver, no process, no product; and no frontend knows another.

pub mod a2a;
pub mod acp;
pub mod admin;
mod client_prefix;
pub mod dialect;
pub mod docs;
pub mod forward;
pub mod frontend;
pub mod guard;
pub mod identity;
mod iso_time;
mod json;
pub mod jsonrpc;
pub mod keys;
pub mod messages;
pub mod ollama;
pub mod openai;
mod path;
mod path_key;
pub mod problem;
pub mod responses;
pub mod routes;
pub mod server;
pub mod sse;
mod static_response;
pub mod ui;
pub mod websocket;
