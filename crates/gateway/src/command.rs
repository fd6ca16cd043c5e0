//! The commands, one file each: from typed words and configuration to output and an exit code.

pub mod agents;
pub mod cluster;
pub mod completions;
pub mod config;
pub mod connect;
pub mod doctor;
pub mod keys;
pub mod launch;
pub mod man_pages;
pub mod origins;
pub mod run;
pub mod serve;
pub mod sessions;
pub mod trust;

use std::ffi::OsString;

use gembridge_drivers::profile::Profile;

use crate::cli::args::{Args, Command, ConfigCommand};
use crate::cli::{self, Parsed};
use crate::config::settings::Level;
use crate::config::{Config, Environment, Flag, Sources};
use crate::exit::{CommandError, CommandResult, ExitCode};
use crate::logging::{self, Plan, Verbosity};
use crate::terminal::{self, Terminal};

/// What every command works with.
pub struct Context {
    pub config: Config,
    /// Every agent there is, by name.
    pub profiles: Vec<Profile>,
    pub terminal: Terminal,
    /// What files in a person's folders leave to others.
    pub umask: u32,
    /// What the configuration was made from, for whoever reads it again.
    pub sources: Sources,
}

/// Reads the command line, then the configuration, then does what was asked. Nothing is started before both are right.
pub fn dispatch(
    words: impl Iterator<Item = OsString>,
    environment: Environment,
    terminal: Terminal,
    umask: u32,
) -> CommandResult {
    let args = match cli::parse(words, terminal.stdout.is_coloured)? {
        Parsed::Command(args) => *args,
        Parsed::Text(text) => {
            terminal::print(&text)?;
            return Ok(ExitCode::Success);
        }
    };
    // These need no configuration, and must work while it is broken.
    match &args.command {
        Command::Completions(args) => return completions::run(args),
        Command::ManPages(args) => return man_pages::run(args),
        Command::Config(ConfigCommand::Schema) => return config::schema(),
        _ => {}
    }
    let context = Context::load(&args, environment, terminal, umask)?;
    // `doctor` tells of it among the rest.
    if !matches!(args.command, Command::Doctor(_)) {
        context.config.folders.check_owners()?;
    }
    let default = match args.command {
        Command::Serve(_) => crate::serve::LOG_LEVEL,
        _ => Level::Warn,
    };
    let verbosity = if args.global.quiet { Verbosity::Quiet } else { Verbosity::Normal { default } };
    let mut plan = Plan::new(&context.config.settings.log, verbosity, context.terminal.stderr);
    if let Command::Serve(_) = args.command {
        plan.audit = Some(context.config.folders.audit());
    }
    let log = logging::start(&plan);
    for warning in &context.config.warnings {
        tracing::warn!("{warning}");
    }
    let done = act(&args.command, &context);
    log.finish();
    done
}

fn act(command: &Command, context: &Context) -> CommandResult {
    match command {
        Command::Serve(args) => serve::run(args, context),
        Command::Run(args) => run::run(args, context),
        Command::Chat(args) => run::chat(args, context),
        Command::Connect(args) => connect::run(args, context),
        Command::Launch(args) => launch::run(args, context),
        Command::Sessions(command) => sessions::run(command, context),
        Command::Agents(args) => agents::run(args, context),
        Command::Doctor(args) => doctor::run(args, context),
        Command::Config(ConfigCommand::Show { json: false }) => config::show_text(context),
        Command::Config(ConfigCommand::Show { json: true }) => config::show_json(context),
        Command::Config(ConfigCommand::Schema) => config::schema(),
        Command::Keys(command) => keys::run(command, context),
        Command::Origins(command) => origins::run(command, context),
        Command::Trust(command) => trust::run(command, context),
        Command::Cluster(args) => cluster::run(args, context),
        Command::Completions(args) => completions::run(args),
        Command::ManPages(args) => man_pages::run(args),
        // They come through here only behind a global flag: `gembridge --quiet demo-agent`.
        Command::DemoAgent(_) | Command::Guard(_) => {
            Err(CommandError::usage("this command stands first on the line; put the other flags away"))
        }
    }
}

impl Context {
    fn load(args: &Args, environment: Environment, terminal: Terminal, umask: u32) -> Result<Self, CommandError> {
        let sources = args.global.sources(environment, flags(&args.command));
        let config = Config::load(sources.clone())?;
        let profiles = config.profiles()?;
        Ok(Self { config, profiles, terminal, umask, sources })
    }
}

/// The settings that a command's own flags stand for.
fn flags(command: &Command) -> Vec<Flag> {
    match command {
        Command::Serve(args) => serve::flags(args),
        Command::Run(args) => run::flags(&args.agent, args.timeout),
        Command::Chat(args) => run::flags(&args.agent, None),
        Command::Doctor(args) => run::agent_flag(args.agent.as_deref()).into_iter().collect(),
        Command::Connect(_)
        | Command::Sessions(_)
        | Command::Agents(_)
        | Command::Config(_)
        | Command::Keys(_)
        | Command::Origins(_)
        | Command::Launch(_)
        | Command::Trust(_)
        | Command::Cluster(_)
        | Command::Completions(_)
        | Command::ManPages(_)
        | Command::DemoAgent(_)
        | Command::Guard(_) => Vec::new(),
    }
}

/// A login and what it was told by; a login that is always there needs no telling.
fn login_told(title: &str, source: &str) -> String {
    if source == "always" { title.to_owned() } else { format!("{title}, by {source}") }
}

/// JSON for people and programs alike.
fn pretty(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}
