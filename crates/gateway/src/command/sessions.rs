//! `gembridge sessions`: earlier conversations, out of the agents' own session files and the gateway's store.

pub mod bounded;
mod clip;
mod export;
mod list;
mod own;
mod progress;
mod resume;
mod search;
mod show;
mod stats;
pub mod tool_line;
mod watch;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use gembridge_transcripts::{Agent, Damage, FindError, Library, Located, ReadOptions, Root, Scan};
use gembridge_unified::Originals;
use gembridge_unified::tool_names::ToolNames;

use crate::cli::args::sessions::{ExportFormat, Names, ReadingArgs, SessionsCommand};
use crate::config::trust::Trust;
use crate::config::{Environment, Folders};
use crate::exit::{CommandError, CommandResult, ExitCode};

use super::Context;

pub fn run(command: &SessionsCommand, context: &Context) -> CommandResult {
    match command {
        SessionsCommand::List(args) => list::run(args, context),
        SessionsCommand::Show(args) if args.json => {
            export::run(args.id.as_deref(), ExportFormat::Json, args.reading.options(), context)
        }
        SessionsCommand::Show(args) => show::run(args, context),
        SessionsCommand::Export(args) => {
            let format = if args.json { ExportFormat::Json } else { args.format };
            export::run(args.id.as_deref(), format, args.reading.options(), context)
        }
        SessionsCommand::Search(args) => search::run(args, context),
        SessionsCommand::Stats(args) => stats::run(args, context),
        SessionsCommand::Watch(args) => watch::run(args, context),
        SessionsCommand::Resume(args) => return resume::run(args, context),
    }?;
    Ok(ExitCode::Success)
}

impl ReadingArgs {
    fn options(self) -> ReadOptions {
        ReadOptions {
            originals: if self.no_originals { Originals::Leave } else { Originals::Keep },
            tool_names: match self.tool_names {
                Names::Extended => ToolNames::Extended,
                Names::Basic => ToolNames::Basic,
            },
        }
    }
}

/// Every session of this machine.
fn scan(context: &Context) -> Result<Scan, CommandError> {
    let scan = scan_machine(&context.config.environment, &context.config.folders, Some(&present_folder()?))?;
    warn(&scan.damages);
    Ok(scan)
}

/// The same for whoever has no use for warnings. Old sessions may name the hash of their folder only: it is known if it is
/// `present`, or trusted.
pub fn scan_machine(
    environment: &Environment,
    folders: &Folders,
    present: Option<&Path>,
) -> Result<Scan, CommandError> {
    let mut known_projects: Vec<_> = present.into_iter().flat_map(Path::ancestors).map(Path::to_owned).collect();
    known_projects.extend(Trust::load(&folders.config)?.folders().into_iter().map(Path::to_owned));
    let mut scan = Library { roots: roots(environment), known_projects }.scan();
    add_own(&mut scan, folders);
    Ok(scan)
}

/// The gateway's own sessions. That they cannot be read is no reason to withhold the others.
fn add_own(scan: &mut Scan, folders: &Folders) {
    let folder = folders.sessions();
    if !folder.exists() {
        return;
    }
    match own::sessions(&folder) {
        Ok(own) => scan.add(own, folder),
        Err(error) => tracing::warn!("the sessions of the gateway are left out: {error}"),
    }
}

/// Where each agent keeps its sessions, unless its own variable says otherwise.
fn roots(environment: &Environment) -> Vec<Root> {
    let absolute = |name: &str| environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let below_home = |below: &str| absolute("HOME").map(|home| home.join(below));
    let folders = [
        (Agent::Claude, absolute("CLAUDE_CONFIG_DIR").or_else(|| below_home(".claude"))),
        (Agent::Codex, absolute("CODEX_HOME").or_else(|| below_home(".codex"))),
        (Agent::Gemini, absolute("GEMINI_CLI_HOME").or_else(|| absolute("HOME")).map(|home| home.join(".gemini"))),
        (
            Agent::OpenCode,
            absolute("XDG_DATA_HOME").or_else(|| below_home(".local/share")).map(|data| data.join("opencode")),
        ),
        (Agent::Qwen, below_home(".qwen")),
    ];
    folders.into_iter().filter_map(|(agent, folder)| Some(Root { agent, folder: folder? })).collect()
}

/// The session that was named, or the latest of the present folder.
fn named<'a>(id: Option<&str>, scan: &'a Scan) -> Result<&'a Located, CommandError> {
    match id {
        Some(id) => Ok(scan.by_id(id)?),
        None => Ok(scan.latest(Some(&present_folder()?))?),
    }
}

fn present_folder() -> Result<PathBuf, CommandError> {
    Ok(std::env::current_dir().context("the present folder cannot be read; change to another one")?)
}

/// What could not be read goes to standard error, so that the result stays whole.
fn warn(damages: &[Damage]) {
    const MOST: usize = 10;
    for damage in damages.iter().take(MOST) {
        tracing::warn!("{damage}");
    }
    if damages.len() > MOST {
        tracing::warn!("{} more places could not be read", damages.len() - MOST);
    }
}

impl From<FindError> for CommandError {
    fn from(error: FindError) -> Self {
        Self { code: ExitCode::Usage, error: error.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_own_variable_says_where_its_sessions_are() {
        let folder = |environment: &Environment, agent| {
            let roots = roots(environment).into_iter();
            roots.filter(|root| root.agent == agent).map(|root| root.folder.display().to_string()).next().unwrap()
        };
        let plain = Environment::from([("HOME", "/h")]);
        let moved = Environment::from([
            ("HOME", "/h"),
            ("CLAUDE_CONFIG_DIR", "/claude"),
            ("CODEX_HOME", "/codex"),
            ("GEMINI_CLI_HOME", "/g"),
            ("XDG_DATA_HOME", "/data"),
        ]);
        for (agent, by_default, by_variable) in [
            (Agent::Claude, "/h/.claude", "/claude"),
            (Agent::Codex, "/h/.codex", "/codex"),
            (Agent::Gemini, "/h/.gemini", "/g/.gemini"),
            (Agent::OpenCode, "/h/.local/share/opencode", "/data/opencode"),
            (Agent::Qwen, "/h/.qwen", "/h/.qwen"),
        ] {
            assert_eq!(folder(&plain, agent), by_default);
            assert_eq!(folder(&moved, agent), by_variable);
        }
        assert_eq!(roots(&Environment::default()), []);
    }
}
