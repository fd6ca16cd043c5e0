//! `gembridge origins`: whose web pages and browser extensions may call the gateway.

use crate::cli::args::OriginsCommand;
use crate::config::entries::Reported;
use crate::exit::{CommandResult, ExitCode};
use crate::origins::{self, OriginFile};
use crate::terminal;

use super::{Context, pretty};

pub fn run(command: &OriginsCommand, context: &Context) -> CommandResult {
    let folders = &context.config.folders;
    let file = OriginFile::load(folders)?;
    Reported::default().warn(&file.reports());
    let said = match command {
        OriginsCommand::Allow { origin } => format!("pages of {} may call\n", origins::allow(folders, origin)?),
        OriginsCommand::Remove { origin } => {
            format!("pages of {} may no longer call\n", origins::remove(folders, origin)?)
        }
        OriginsCommand::List { json: true } => pretty(&serde_json::json!(file.origins())),
        OriginsCommand::List { json: false } => file.origins().into_iter().map(|origin| origin + "\n").collect(),
    };
    terminal::print(&said)?;
    Ok(ExitCode::Success)
}
