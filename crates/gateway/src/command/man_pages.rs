//! `gembridge man-pages`: one page for the program and one for each of its commands, made from the command line itself.

use std::fs;

use anyhow::Context as _;

use crate::cli;
use crate::cli::args::ManPagesArgs;
use crate::exit::{CommandResult, ExitCode};

pub fn run(args: &ManPagesArgs) -> CommandResult {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| format!("the folder `{}` cannot be made", folder.display()))?;
    let pages = clap_mangen::generate_to(cli::command(), folder);
    pages.with_context(|| format!("the man pages cannot be written into `{}`", folder.display()))?;
    Ok(ExitCode::Success)
}
