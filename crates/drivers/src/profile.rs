//! The typed form of `agents/*.toml`: an agent is data. From a profile and a given environment comes a launch, without any I/O.

mod quirk;

pub use quirk::Quirk;
