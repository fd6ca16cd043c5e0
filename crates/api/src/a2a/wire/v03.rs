//! Version 0.3: flat results with a `kind`, methods with slashes, states in lower case.

pub mod decode;
pub mod encode;
pub mod error;
mod wire;
