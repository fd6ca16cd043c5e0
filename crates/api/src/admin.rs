//! What operators and their tools ask of the gateway itself.

pub mod agent_sessions;
pub mod health;
pub mod metrics;
pub mod operator;
pub mod workspace_files;
