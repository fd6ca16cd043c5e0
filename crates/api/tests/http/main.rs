//! The server and its guard over real sockets, with requests written byte by byte, so that broken ones can be sent.

mod support;

mod bodies;
mod connections;
mod draining;
mod frontends;
mod keyed;
mod operators;
mod reach;
mod second_version;
