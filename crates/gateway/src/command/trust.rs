//! `gembridge trust`: the folders in which agents may work.

use crate::cli::args::TrustCommand;
use crate::config::entries::Reported;
use crate::config::trust::{self, Trust};
use crate::exit::{CommandResult, ExitCode};
use crate::terminal::{self, escape};

use super::{Context, pretty};

pub fn run(command: &TrustCommand, context: &Context) -> CommandResult {
    let config = &context.config.folders.config;
    let listed = Trust::load(config)?;
    Reported::default().warn(&listed.reports());
    let said = match command {
        TrustCommand::Add { folder } => {
            format!("agents may work in {}\n", escape::line(&trust::add(config, folder)?.to_string_lossy()))
        }
        TrustCommand::Remove { folder } => {
            format!(
                "agents may no longer work in {}\n",
                escape::line(&trust::remove(config, folder)?.to_string_lossy())
            )
        }
        TrustCommand::List { json: true } => pretty(&serde_json::json!(listed.folders())),
        TrustCommand::List { json: false } => {
            let lines = listed.folders().into_iter();
            lines.map(|folder| escape::line(&folder.to_string_lossy()).into_owned() + "\n").collect()
        }
    };
    terminal::print(&said)?;
    Ok(ExitCode::Success)
}
