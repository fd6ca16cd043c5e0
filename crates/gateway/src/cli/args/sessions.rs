//! The words of `gembridge sessions`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

#[derive(Debug, Clone, Subcommand)]
pub enum SessionsCommand {
    /// The sessions of this project, the latest first: title, agent, model, turns, tokens, age.
    List(ListSessionsArgs),
    /// One session as text, each tool call in a line.
    Show(ShowSessionArgs),
    /// One session as JSON, JSON lines, Markdown or HTML, on standard output.
    Export(ExportSessionArgs),
}

#[derive(Debug, Clone, clap::Args)]
pub struct ListSessionsArgs {
    /// Every project, instead of the present folder and what lies in it.
    #[arg(long, conflicts_with = "project")]
    pub all: bool,
    /// The project of this folder, instead of the present one.
    #[arg(long, value_name = "FOLDER")]
    pub project: Option<PathBuf>,
    /// Only sessions of this agent.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// At most this many, the latest.
    #[arg(long, short = 'n', value_name = "N")]
    pub limit: Option<usize>,
    /// One JSON array, for programs.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct ShowSessionArgs {
    /// The id of the session, or its beginning. Without it: the latest of this project.
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// What went into the tools and came out of them, too.
    #[arg(long)]
    pub full: bool,
    /// The same as `export --format json`, for programs.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

#[derive(Debug, Clone, clap::Args)]
pub struct ExportSessionArgs {
    /// The id of the session, or its beginning. Without it: the latest of this project.
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    #[arg(long, short, value_name = "FORMAT", default_value = "markdown")]
    pub format: ExportFormat,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// How a session's messages are made.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct ReadingArgs {
    /// Which tools get the names of Claude Code: all that have one, or six of Gemini CLI.
    #[arg(long, value_name = "NAMES", default_value = "extended")]
    pub tool_names: Names,
    /// Leave `_original`, the agent's own records, out of the JSON.
    #[arg(long)]
    pub no_originals: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One object: what is known of the session, and its messages.
    Json,
    /// One message a line.
    Jsonl,
    Markdown,
    /// One file that needs nothing else.
    Html,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Names {
    Extended,
    Basic,
}
