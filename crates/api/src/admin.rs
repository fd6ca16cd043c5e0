//! What operators and their tools ask of the gateway itself.

pub mod health;
pub mod metrics;
pub mod operator;
