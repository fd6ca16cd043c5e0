//! The words of `gembridge sessions`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use jiff::civil::Date;

use super::{OutputFormat, model_name};
use crate::config::settings::Policy;
use crate::config::value::ModelName;

#[derive(Debug, Clone, Subcommand)]
pub enum SessionsCommand {
    /// The sessions of this project, the latest first: title, agent, model, turns, tokens, age.
    List(ListSessionsArgs),
    /// One session as text, each tool call in a line.
    Show(ShowSessionArgs),
    /// One session as JSON, JSON lines, Markdown or HTML, on standard output.
    Export(ExportSessionArgs),
    /// The sessions in which words were said, the best first, with the command that goes on with each.
    Search(SearchArgs),
    /// Tokens by day, agent, model and project, and what they cost by your price table.
    Stats(StatsArgs),
    /// One session as it is being written, until Ctrl-C.
    Watch(WatchArgs),
    /// Goes on with a session: in the agent that wrote it where that can load it, else an agent is told what was said.
    Resume(ResumeArgs),
}

#[derive(Debug, Clone, clap::Args)]
pub struct SearchArgs {
    /// Words that must all stand in one passage; "a phrase" in quotes; `inde*` for what begins so.
    #[arg(value_name = "WORD", required = true)]
    pub words: Vec<String>,
    /// Only sessions of this folder and what lies in it.
    #[arg(long, value_name = "FOLDER")]
    pub project: Option<PathBuf>,
    /// Only sessions of this agent; `gembridge` for those of the gateway.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// At most this many.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
    pub limit: usize,
    /// One JSON array, for programs.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct StatsArgs {
    /// One table instead of all of them.
    #[arg(long, value_name = "WHAT")]
    pub by: Option<Grouping>,
    /// Only from this day on, such as `2026-11-01`.
    #[arg(long, value_name = "DAY", value_parser = day)]
    pub since: Option<Date>,
    /// Only up to this day.
    #[arg(long, value_name = "DAY", value_parser = day)]
    pub until: Option<Date>,
    /// Only sessions of this folder and what lies in it.
    #[arg(long, value_name = "FOLDER")]
    pub project: Option<PathBuf>,
    /// Only sessions of this agent; `gembridge` for those of the gateway.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// One JSON object, for programs.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct WatchArgs {
    /// The id of the session, or its beginning. Without it: the latest of this project.
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// How many of the messages that are there already are shown first.
    #[arg(long = "last", short = 'n', value_name = "N", default_value_t = 10)]
    pub last: usize,
    /// One message a line, for programs. A message that grows comes again under the same id.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

#[derive(Debug, Clone, clap::Args)]
pub struct ResumeArgs {
    /// The id of the session, or its beginning.
    #[arg(value_name = "ID")]
    pub id: String,
    /// One prompt, `-` for standard input. Without it: a chat.
    #[arg(value_name = "PROMPT")]
    pub prompt: Option<String>,
    /// Another agent than the one that wrote it; it is told what was said.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// The model, instead of the agent's default.
    #[arg(long, short, value_name = "MODEL", value_parser = model_name)]
    pub model: Option<ModelName>,
    /// Talk only: an empty private folder instead of the session's own, and no tools.
    #[arg(long)]
    pub chat: bool,
    /// What to answer when the agent asks whether a tool may run.
    #[arg(long, value_name = "POLICY")]
    pub permissions: Option<Policy>,
    /// What a prompt prints: the answer, one JSON object at the end, or one JSON message a line as they come.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    pub output_format: OutputFormat,
    /// The same as `--output-format json`.
    #[arg(long, conflicts_with = "output_format")]
    pub json: bool,
}

/// What tokens are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Grouping {
    Day,
    Agent,
    Model,
    Project,
}

fn day(text: &str) -> Result<Date, String> {
    text.parse().map_err(|_| "expected a day, such as `2026-11-16`".to_owned())
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
