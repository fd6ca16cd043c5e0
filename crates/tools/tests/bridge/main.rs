//! The tool bridge as agents meet it: over real sockets, with the client of the protocol's own library and with bare HTTP.

#[path = "../support/agent.rs"]
mod agent;
#[path = "../support/raw.rs"]
mod raw;

mod calls;
mod auth;
mod lifecycle;
mod lists;
mod shim;
