//! The command line.

use std::path::PathBuf;

#[derive(Clone, Debug, clap::Parser)]
#[command(name = "gembridge-bench", about = "Ours, peers and the limit, side by side in one run.")]
pub struct Args {
    /// The scenarios to run; all of them without a name.
    pub scenarios: Vec<String>,

    /// Times that each scenario goes round all its contenders.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Writes every number to a file as well.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Names the scenarios and runs none.
    #[arg(long)]
    pub list: bool,

    /// A folder with another `node`, for one more row of `cold-ready`: version 22 and later keep compiled code.
    #[arg(long, value_name = "FOLDER")]
    pub node: Option<PathBuf>,

    /// Only this crowd of `one-token`, `paced` and `firehose-http`.
    #[arg(long, value_name = "COUNT")]
    pub clients: Option<usize>,

    /// Chunks of one burst in `firehose`.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub chunks: u32,

    /// The largest size of `transcript`; the claim is about 1000.
    #[arg(long, value_name = "MB", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub megabytes: u32,

    /// How long each phase of `hostile-guest` takes.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,

    /// The agent of `hostile-guest`. The real ones come from `scripts/setup tests` and ask a fake model.
    #[arg(long, value_enum, default_value_t = BenchAgent::Demo)]
    pub agent: BenchAgent,

    /// Requests a second of each honest client of `hostile-guest`; each agent has a default that a quiet machine carries.
    #[arg(long, value_name = "NUMBER")]
    pub rate: Option<f64>,

    /// More settings for the gateway of `hostile-guest`, as in `gembridge.toml`, each in a line such as `guests.nice = 0`.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// The agents that serve guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum BenchAgent {
    Demo,
    Gemini,
    Claude,
    #[value(name = "opencode")]
    OpenCode,
}

impl Args {
    pub fn is_wanted(&self, clients: usize) -> bool {
        self.clients.is_none_or(|only| only == clients)
    }
}
