//! `gembridge config`: what the configuration is, and what it may be.

use crate::config::{schema, show};
use crate::exit::{CommandResult, ExitCode};
use crate::terminal;

use super::{Context, pretty};

pub fn show_text(context: &Context) -> CommandResult {
    terminal::print(&terminal::escape::text(&show::text(&context.config)))?;
    Ok(ExitCode::Success)
}

pub fn show_json(context: &Context) -> CommandResult {
    terminal::print(&pretty(&show::json(&context.config)))?;
    Ok(ExitCode::Success)
}

pub fn schema() -> CommandResult {
    terminal::print(&pretty(&schema::json()))?;
    Ok(ExitCode::Success)
}
