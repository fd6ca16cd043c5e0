//! `gembridge completions`: the script for a shell, made from the command line itself.

use crate::cli;
use crate::cli::args::CompletionsArgs;
use crate::exit::{CommandResult, ExitCode};
use crate::terminal;

pub fn run(args: &CompletionsArgs) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "gembridge", &mut script);
    terminal::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::Success)
}
