//! `gembridge run` and `gembridge chat`: what is meant by the flags, once joined with the configuration.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gembridge_core::model::SessionId;
use gembridge_drivers::profile::{self, Profile};

use crate::agents::{self, Agent};
use crate::app::import::Import;
use crate::cli::args::{AgentArgs, ChatArgs, Driver, OutputFormat, RunArgs};
use crate::config::settings::Policy;
use crate::config::trust::Trust;
use crate::config::{Flag, Key};
use crate::exit::{CommandError, CommandResult};

use super::Context;

/// A prompt that is longer is a file that somebody piped in by mistake.
const LONGEST_PROMPT: u64 = 10 << 20;

/// One turn, ready to be started.
#[derive(Clone, Debug)]
pub struct RunRequest {
    pub prompt: String,
    pub session: SessionRequest,
    pub output: OutputFormat,
}

/// What `run` and `chat` want of their session.
#[derive(Clone, Debug)]
pub struct SessionRequest {
    pub agent: Agent,
    pub model: Option<Arc<str>>,
    /// The agent's own mode.
    pub mode: Option<Arc<str>>,
    /// A trusted folder to work in; `None` is an empty private one.
    pub workspace: Option<PathBuf>,
    pub permissions: Permissions,
    pub resume: Option<SessionId>,
    /// A session of an agent's own that is gone on with.
    pub import: Option<Import>,
    pub author: Author,
}

impl SessionRequest {
    /// Whether the agent shall find a session that it wrote without us.
    pub fn is_loaded_by_its_writer(&self) -> bool {
        self.import.as_ref().is_some_and(|import| import.agent_session.is_some())
    }
}

/// Who wrote the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// The person who typed the command: a leading `/` is theirs to use.
    Person,
    /// Whatever came through a pipe.
    Pipe,
}

/// What becomes of the agent's questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permissions {
    /// Whoever is there answers; with nobody there, no.
    Ask,
    Deny,
    /// The settings allow reading, searching, fetching and editing; the rest is asked.
    AllowHarmless,
    /// The person typed it for this one command: yes to every call of it.
    Allow,
}

impl Permissions {
    fn typed(policy: Policy) -> Self {
        match policy {
            Policy::Ask => Self::Ask,
            Policy::Deny => Self::Deny,
            Policy::Allow => Self::Allow,
        }
    }

    fn standing(policy: Policy) -> Self {
        match policy {
            Policy::Ask => Self::Ask,
            Policy::Deny => Self::Deny,
            Policy::Allow => Self::AllowHarmless,
        }
    }
}

pub fn run(args: &RunArgs, context: &Context) -> CommandResult {
    let author = author(args.prompt.as_deref().unwrap_or("-"));
    let session = session(&args.agent, author, context)?;
    let request = RunRequest { prompt: prompt(args.prompt.as_deref())?, session, output: args.output_format };
    crate::app::run(&request, context)
}

/// Who wrote what is the prompt of a command.
pub fn author(typed: &str) -> Author {
    if typed == "-" { Author::Pipe } else { Author::Person }
}

pub fn chat(args: &ChatArgs, context: &Context) -> CommandResult {
    let request = session(&args.agent, Author::Person, context)?;
    crate::app::chat(&request, context)
}

/// The settings among the flags. The agent's own are read from the request.
pub fn flags(args: &AgentArgs, timeout: Option<Duration>) -> Vec<Flag> {
    let policy = args.permissions.and_then(|policy| clap::ValueEnum::to_possible_value(&policy));
    let policy = policy.map(|policy| Flag {
        name: "--permissions",
        key: Key::dotted("permissions.policy"),
        value: policy.get_name().to_owned(),
    });
    let timeout = timeout.map(|timeout| Flag {
        name: "--timeout",
        key: Key::dotted("turn.total"),
        value: timeout.as_secs().to_string(),
    });
    agent_flag(args.agent.as_deref()).into_iter().chain(policy).chain(timeout).collect()
}

pub fn agent_flag(agent: Option<&str>) -> Option<Flag> {
    agent.map(|agent| Flag { name: "--agent", key: Key::dotted("default.agent"), value: agent.to_owned() })
}

fn session(args: &AgentArgs, author: Author, context: &Context) -> Result<SessionRequest, CommandError> {
    let agent = match args.driver {
        None => agents::choose(&context.profiles, &context.config)?,
        Some(driver) => agents::choose(&profiles_by(driver, context)?, &context.config)?,
    };
    session_with(agent, args, author, context)
}

/// The agents that can be run by a driver, each as it is run by it.
fn profiles_by(driver: Driver, context: &Context) -> Result<Vec<Profile>, CommandError> {
    let driver = match driver {
        Driver::Acp => profile::Driver::Acp,
        Driver::Headless => profile::Driver::Headless,
    };
    let named = context.config.settings.default.agent.as_deref();
    let mut profiles = Vec::new();
    for profile in &context.profiles {
        match profile.clone().with_driver(driver) {
            Ok(profile) => profiles.push(profile),
            // Only an agent that was asked for by its name is missed.
            Err(error) if named == Some(profile.name.as_str()) => return Err(CommandError::usage(error.to_string())),
            Err(_) => {}
        }
    }
    Ok(profiles)
}

/// The same with an agent that was chosen already.
pub fn session_with(
    agent: Agent,
    args: &AgentArgs,
    author: Author,
    context: &Context,
) -> Result<SessionRequest, CommandError> {
    let workspace = args.cwd.as_deref().map(|folder| trusted(folder, context)).transpose()?;
    let settings = &context.config.settings.permissions;
    // What was typed counts for this once; otherwise a workspace may have a policy of its own.
    let of_workspace = || {
        let folder = workspace.as_deref()?;
        settings.workspaces.iter().find(|(path, _)| path.as_path() == folder).map(|(_, policy)| *policy)
    };
    let permissions = match args.permissions {
        Some(policy) => Permissions::typed(policy),
        None => Permissions::standing(of_workspace().unwrap_or(settings.policy)),
    };
    Ok(SessionRequest {
        agent,
        model: args.model.as_ref().map(|model| model.as_str().into()),
        mode: args.mode.as_deref().map(Into::into),
        permissions,
        workspace,
        resume: args.resume,
        import: None,
        author,
    })
}

fn trusted(folder: &Path, context: &Context) -> Result<PathBuf, CommandError> {
    let real = folder.canonicalize().map_err(|error| {
        CommandError::usage(format!("cannot work in `{}`: {error}; name a folder that exists", folder.display()))
    })?;
    if !real.is_dir() {
        return Err(CommandError::usage(format!("`{}` is not a folder; `--cwd` wants one", real.display())));
    }
    let is_named = || {
        let workspaces = context.profiles.iter().filter_map(|profile| profile.chosen.workspace.as_ref());
        workspaces.filter_map(|workspace| workspace.canonicalize().ok()).any(|workspace| real.starts_with(workspace))
    };
    if Trust::load(&context.config.folders.config)?.covers(&real) || is_named() {
        return Ok(real);
    }
    Err(CommandError::usage(format!(
        "`{0}` is not trusted, and an agent would run what it finds there; run `gembridge trust add {0}` first",
        real.display()
    )))
}

pub fn prompt(typed: Option<&str>) -> Result<String, CommandError> {
    let prompt = match typed {
        Some(prompt) if prompt != "-" => prompt.to_owned(),
        _ => read_prompt(std::io::stdin())?,
    };
    if prompt.trim().is_empty() {
        return Err(CommandError::usage("the prompt is empty; give it as an argument or on standard input"));
    }
    Ok(prompt)
}

fn read_prompt(source: impl std::io::Read) -> Result<String, CommandError> {
    let mut bytes = Vec::new();
    source
        .take(LONGEST_PROMPT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CommandError::usage(format!("cannot read the prompt from standard input: {error}")))?;
    if bytes.len() as u64 > LONGEST_PROMPT {
        return Err(CommandError::usage("the prompt on standard input is longer than 10 MB; shorten it"));
    }
    String::from_utf8(bytes).map_err(|_| CommandError::usage("the prompt on standard input is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_from_standard_input_is_bounded_and_must_be_text() {
        assert_eq!(read_prompt("hello\n".as_bytes()).unwrap(), "hello\n");
        assert!(read_prompt(std::io::repeat(b'x')).unwrap_err().error.to_string().contains("longer than 10 MB"));
        assert!(read_prompt(&b"\xff"[..]).unwrap_err().error.to_string().contains("not UTF-8"));
    }

    #[test]
    fn an_empty_prompt_is_refused() {
        assert!(prompt(Some(" \n")).unwrap_err().error.to_string().contains("the prompt is empty"));
    }
}
