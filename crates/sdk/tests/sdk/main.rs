//! The library on the demo agent and on the fake agent, both real processes: every behaviour that it promises.

mod fixture;

mod basics;
mod continuation;
mod ends;
mod environment;
mod files;
mod guard;
mod handshake;
mod output;
mod permissions;
mod sessions;
mod shim;
mod tools;
mod transcript;
mod workspace;
