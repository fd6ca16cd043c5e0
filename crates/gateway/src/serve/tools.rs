//! The place where agents find the tools of clients, as this gateway opens it.

use std::sync::Arc;

use gembridge_drivers::profile::Profile;
use gembridge_tools::{Config, ToolBridge};

use crate::exit::{CommandError, ExitCode};

/// Listens on loopback, under every name that an agent is told for it.
pub async fn start(profiles: &[Profile]) -> Result<ToolBridge, CommandError> {
    let mut names: Vec<Arc<str>> = profiles.iter().map(|profile| profile.mcp.server_name.as_str().into()).collect();
    names.sort_unstable();
    names.dedup();
    let mut config = Config { aliases: names, ..Config::default() };
    if let Some(limit) = profiles.iter().filter_map(|profile| profile.mcp.name_limit).min() {
        config.name_limit = config.name_limit.min(limit);
    }
    ToolBridge::start(config).await.map_err(|error| CommandError::new(ExitCode::Failed, error.to_string()))
}
