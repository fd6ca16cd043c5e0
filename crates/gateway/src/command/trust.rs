//! `gembridge trust`: the folders in which agents may work.

use crate::cli::args::TrustCommand;
use crate::config::trust::Trust;
use crate::exit::{CommandResult, ExitCode};
use crate::terminal::{self, escape};

use super::{Context, pretty};

pub fn run(command: &TrustCommand, context: &Context) -> CommandResult {
    let mut trust = Trust::load(&context.config.folders.config)?;
    let said = match command {
        TrustCommand::Add { folder } => {
            format!("agents may work in {}\n", escape::line(&trust.add(folder)?.to_string_lossy()))
        }
        TrustCommand::Remove { folder } => {
            format!("agents may no longer work in {}\n", escape::line(&trust.remove(folder)?.to_string_lossy()))
        }
        TrustCommand::List { json: true } => pretty(&serde_json::json!(trust.folders())),
        TrustCommand::List { json: false } => {
            let lines = trust
                .folders()
                .iter()
                .flat_map(|folder| [escape::line(&folder.to_string_lossy()).into_owned(), "\n".to_owned()]);
            lines.collect()
        }
    };
    terminal::print(&said)?;
    Ok(ExitCode::Success)
}
