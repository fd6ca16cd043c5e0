//! The tool bridge as agents meet it: over real sockets, with the client of the protocol's own library and with bare HTTP.

mod agent;
mod raw;

mod calls;
mod auth;
mod lifecycle;
mod lists;
mod shim;
