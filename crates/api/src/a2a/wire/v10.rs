//! Version 1.0: results wrapped by their kind, methods in capitals, states in the words of Protocol Buffers.

pub mod decode;
pub mod encode;
pub mod error;
mod wire;
