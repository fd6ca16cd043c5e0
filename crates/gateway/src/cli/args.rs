//! What was typed, checked word by word and not yet joined with the configuration.

pub mod sessions;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use gembridge_core::model::SessionId;

use crate::config::settings::{Level, Policy};
use crate::config::value::{Count, HostName, ModelName};
use crate::connect::Address;
use sessions::SessionsCommand;

/// Opens coding agents to everything else: one live session, many APIs.
#[derive(Debug, Parser)]
#[command(
    name = "gembridge",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Args {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Debug, clap::Args)]
pub struct Global {
    /// The settings file, instead of `gembridge.toml` in the config folder.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How much to tell on standard error.
    #[arg(long, global = true, value_name = "LEVEL")]
    pub log_level: Option<Level>,
    /// No colours, as with `NO_COLOR` in the environment.
    #[arg(long, global = true)]
    pub no_color: bool,
    /// Nothing but errors on standard error.
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serves the agents to OpenAI clients, browsers and ACP clients on one address; makes a key on the first run.
    Serve(ServeArgs),
    /// One turn: the prompt comes from the argument or from standard input, the answer goes to standard output.
    Run(RunArgs),
    /// An interactive chat in the terminal.
    Chat(ChatArgs),
    /// A stdio ACP agent that relays to a gateway, for editors and other ACP clients.
    Connect(ConnectArgs),
    /// Starts another program with the gateway in the place of its model; nothing of its own settings is changed.
    Launch(LaunchArgs),
    /// Earlier conversations, out of the agents' own session files.
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// The known agents: which are installed, where, in which version, with which login.
    Agents(AgentsArgs),
    /// Checks this installation: ✓ good, ! look at it, ✗ broken, with the fix for each.
    Doctor(DoctorArgs),
    /// The configuration: every value with its origin, or the schema of the file.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Who may use the gateway.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Whose web pages and browser extensions may call the gateway.
    #[command(subcommand)]
    Origins(OriginsCommand),
    /// The folders in which agents may work.
    #[command(subcommand)]
    Trust(TrustCommand),
    /// The gateways that serve as one: where each is, what it does, and for how long.
    Cluster(ClusterArgs),
    /// The script that completes this command line in your shell.
    Completions(CompletionsArgs),
    /// Writes the man pages of this command line into a folder, for packages.
    #[command(hide = true)]
    ManPages(ManPagesArgs),
    /// The built-in deterministic ACP agent on standard input and output.
    #[command(disable_help_flag = true)]
    DemoAgent(PassedOn),
    /// Keeps one agent's processes together; started by gembridge itself.
    #[command(hide = true, disable_help_flag = true)]
    Guard(PassedOn),
}

#[derive(Debug, clap::Args)]
pub struct ClusterArgs {
    /// As JSON, for programs.
    #[arg(long)]
    pub json: bool,
}

/// Which agent, and how it shall work.
#[derive(Debug, Clone, clap::Args)]
pub struct AgentArgs {
    /// The agent, by its name in `gembridge agents`.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// How the agent is run: `acp`, warm and asking, or `headless`, one process for each turn, which asks nobody.
    #[arg(long, value_name = "DRIVER")]
    pub driver: Option<Driver>,
    /// The model, instead of the agent's default.
    #[arg(long, short, value_name = "MODEL", value_parser = model_name)]
    pub model: Option<ModelName>,
    /// The agent's own mode, such as `plan`.
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,
    /// Let the agent work in this trusted folder, with its tools. Without it: an empty private folder and no tools.
    #[arg(long, value_name = "FOLDER")]
    pub cwd: Option<PathBuf>,
    /// What to answer when the agent asks whether a tool may run.
    #[arg(long, value_name = "POLICY")]
    pub permissions: Option<Policy>,
    /// Go on with an earlier session.
    #[arg(long, value_name = "ID", value_parser = session_id)]
    pub resume: Option<SessionId>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct RunArgs {
    /// The prompt. Without it, or with `-`, it is read from standard input.
    pub prompt: Option<String>,
    #[command(flatten)]
    pub agent: AgentArgs,
    /// What to print: the answer, one JSON object at the end, or one JSON message a line as they come.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    pub output_format: OutputFormat,
    /// Give up after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct ChatArgs {
    #[command(flatten)]
    pub agent: AgentArgs,
}

#[derive(Debug, Clone, clap::Args)]
pub struct ConnectArgs {
    /// The gateway's WebSocket, `ws://` or `wss://`; without it the one that runs on this machine. `?session=ID` goes on
    /// with a session.
    #[arg(value_name = "URL")]
    pub url: Option<Address>,
    /// The file that holds the key. Without it: `GEMBRIDGE_KEY`, or your own key for your gateway on this machine.
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Trusts the folder that the client opens, as `gembridge trust add` does, so that your agent works in it with its tools.
    /// Without it the agent works in folders that are trusted already, and the client asks you about others.
    #[arg(long)]
    pub trust: bool,
    /// Leaves out the folder that the client names: for programs without a project. The agent works where its gateway has it
    /// work.
    #[arg(long, conflicts_with = "trust")]
    pub no_folder: bool,
    /// The certificate authority, as PEM, that a `wss://` gateway's certificate must come from, instead of those that this
    /// machine trusts.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Sends a key that you named without knowing who reads it: in plain text beyond this machine, or to a listener on
    /// it that does not prove to be your gateway.
    #[arg(long)]
    pub insecure: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct LaunchArgs {
    /// `claude`, `codex`, `opencode`, `qwen`, `copilot` or `aider`.
    #[arg(value_name = "PROGRAM")]
    pub program: String,
    /// The model that it asks for: an agent, `agent/model` or a mapped name; `default` is the default agent.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model: String,
    /// Shows what would be set, as lines for a shell, and starts nothing.
    #[arg(long)]
    pub print: bool,
    /// Words for the program itself.
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}

#[derive(Debug, Clone, clap::Args)]
pub struct AgentsArgs {
    /// One JSON array, for programs.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct DoctorArgs {
    /// The agent to check, instead of the default one.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// One JSON object, for programs.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, clap::Args)]
pub struct ServeArgs {
    /// The address to listen on. Anything but this machine itself needs a key.
    #[arg(long, value_name = "ADDRESS")]
    pub host: Option<String>,
    /// The port to listen on; 0 lets the system choose one.
    #[arg(long, short, value_name = "PORT")]
    pub port: Option<u16>,
    /// The agent that answers when a request names none.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Another program speaks TLS with the clients.
    #[arg(long)]
    pub behind_proxy: bool,
    /// One more name under which clients may ask for this gateway. May be given several times.
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    pub allow_host: Vec<HostName>,
    /// Refuse a model that is not listed, instead of answering with the default one.
    #[arg(long)]
    pub strict_models: bool,
    /// Write every message of ACP clients to this file as JSON lines; `-` is standard output.
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    pub tap: Option<String>,
}

#[derive(Debug, Clone, Subcommand)]
pub enum KeysCommand {
    /// Makes a key and prints it, this once.
    Create(NewKeyArgs),
    /// The keys: name, rank, since when, limits.
    List {
        /// One JSON array, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Replaces the secret of a key and prints the new one, this once. Its sessions stay its own.
    Rotate {
        name: String,
        /// One JSON object, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Refuses a key from now on, and ends its open streams and sessions.
    Revoke { name: String },
}

#[derive(Debug, Clone, clap::Args)]
pub struct NewKeyArgs {
    /// Whose key it is. A later key of the same name sees nothing of this one's sessions.
    pub name: String,
    /// Let it see the sessions of every key.
    #[arg(long)]
    pub admin: bool,
    /// How many turns of it run at once.
    #[arg(long, value_name = "N", value_parser = count)]
    pub turns: Option<Count>,
    /// How many requests of it may wait.
    #[arg(long, value_name = "N", value_parser = count)]
    pub queue: Option<Count>,
    /// Before keys of a lower priority; 0 without it.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub priority: Option<i8>,
    /// One JSON object, for programs.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Subcommand)]
pub enum OriginsCommand {
    /// Let pages of an origin call, such as `https://app.example.org` or `chrome-extension://<the full id>`.
    Allow { origin: String },
    /// The allowed origins, one a line. Pages of this machine may always call.
    List {
        /// One JSON array, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Allow an origin no more.
    Remove { origin: String },
}

#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCommand {
    /// Every value and where it comes from.
    Show {
        /// One JSON object, for programs.
        #[arg(long)]
        json: bool,
    },
    /// The JSON schema of `gembridge.toml`.
    Schema,
}

#[derive(Debug, Clone, Subcommand)]
pub enum TrustCommand {
    /// Let agents work in a folder and what lies in it.
    Add { folder: PathBuf },
    /// The trusted folders, one a line.
    List {
        /// One JSON array, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Trust a folder no more.
    Remove { folder: PathBuf },
}

#[derive(Debug, clap::Args)]
pub struct ManPagesArgs {
    /// The folder, which is made where it is missing.
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
}

#[derive(Debug, Clone, clap::Args)]
pub struct CompletionsArgs {
    pub shell: clap_complete::Shell,
}

/// Words that another part of the binary reads.
#[derive(Debug, Clone, clap::Args)]
pub struct PassedOn {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Driver {
    Acp,
    Headless,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    Text,
    Json,
    StreamJson,
}

fn model_name(text: &str) -> Result<ModelName, String> {
    text.parse()
}

fn host_name(text: &str) -> Result<HostName, String> {
    text.parse()
}

fn count(text: &str) -> Result<Count, String> {
    text.parse()
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(seconds) if (1..=31_536_000).contains(&seconds) => Ok(Duration::from_secs(seconds)),
        _ => Err("expected a number of seconds from 1".to_owned()),
    }
}

fn session_id(text: &str) -> Result<SessionId, String> {
    text.parse().map_err(|_| "expected the id of a session, such as `0192f0c1-…`".to_owned())
}
