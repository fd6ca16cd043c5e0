//! `gembridge origins`: whose web pages and browser extensions may call the gateway.

use crate::cli::args::OriginsCommand;
use crate::exit::{CommandResult, ExitCode};
use crate::origins::OriginFile;
use crate::terminal;

use super::{Context, pretty};

pub fn run(command: &OriginsCommand, context: &Context) -> CommandResult {
    let mut file = OriginFile::load(&context.config.folders)?;
    let said = match command {
        OriginsCommand::Allow { origin } => format!("pages of {} may call\n", file.allow(origin)?),
        OriginsCommand::Remove { origin } => format!("pages of {} may no longer call\n", file.remove(origin)?),
        OriginsCommand::List { json: true } => pretty(&serde_json::json!(file.origins())),
        OriginsCommand::List { json: false } => file.origins().iter().flat_map(|origin| [origin, "\n"]).collect(),
    };
    terminal::print(&said)?;
    Ok(ExitCode::Success)
}
