//! Which agents there are on this machine, and which one is meant.

pub mod setup;

use std::path::{Path, PathBuf};

use gembridge_drivers::detect::{self, Detection, Disk};
use gembridge_drivers::profile::{Login, Profile, Version, nearest};
use gembridge_process::{GuardProgram, Spawner};

use crate::config::Config;
use crate::exit::{CommandError, ExitCode};

/// Taken when no agent is named and it is installed, logged in or not.
const PREFERRED: &str = "gemini";

/// The order in which agents are looked at when none is named. After the preferred one the first that is installed and
/// logged in is taken.
const ORDER: [&str; 6] = [PREFERRED, "claude", "codex", "opencode", "qwen", "goose"];

/// Taken when no agent is named and no other can be used.
const BUILT_IN: &str = "demo";

/// The agent that a command works with.
#[derive(Clone, Debug)]
pub struct Agent {
    pub profile: Profile,
    pub program: PathBuf,
    pub chosen: Chosen,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// By a flag, a variable or the settings.
    Named,
    /// The first of the known ones that can be used.
    First,
    /// No other can be used, and every front end says so.
    BuiltIn(NoAgent),
}

/// Why no agent but the built-in one can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAgent {
    Installed,
    /// The first one that is installed, and how to log in to it.
    LoggedIn {
        agent: String,
        hint: String,
    },
}

impl NoAgent {
    /// What is wrong.
    pub fn problem(&self) -> String {
        match self {
            Self::Installed => "no agent is installed".to_owned(),
            Self::LoggedIn { agent, .. } => format!("agent `{agent}` is installed, but not logged in"),
        }
    }

    pub fn way_out(&self) -> String {
        match self {
            Self::Installed => "run `npm i -g @google/gemini-cli`, or see `gembridge agents`".to_owned(),
            Self::LoggedIn { hint, .. } => hint.clone(),
        }
    }
}

/// Whether it is the agent that ships in this binary.
pub fn is_built_in(profile: &Profile) -> bool {
    profile.name == BUILT_IN
}

/// Looks for every agent. Nothing is started.
pub fn detect_all(profiles: &[Profile], config: &Config) -> Vec<Detection> {
    let environment = config.environment.to_map();
    let own_binary = own_binary();
    profiles.iter().map(|profile| detect::detect(profile, &environment, &Disk, &own_binary)).collect()
}

/// The agent that is named, else the preferred one if it is installed, else the first that is installed and logged in, else
/// the built-in one.
pub fn choose(profiles: &[Profile], config: &Config) -> Result<Agent, CommandError> {
    if let Some(name) = &config.settings.default.agent {
        return named(name, profiles, config);
    }
    let mut lacking = NoAgent::Installed;
    let of_name = |name: &&str| profiles.iter().find(|profile| profile.name == *name);
    for profile in ORDER.iter().filter_map(of_name) {
        let detection = detect(profile, config);
        let is_ready = profile.name == PREFERRED || is_logged_in(profile, &detection);
        match detection.found {
            Some(found) if is_ready => {
                return Ok(Agent { profile: profile.clone(), program: found.program, chosen: Chosen::First });
            }
            Some(_) if lacking == NoAgent::Installed && !profile.login.is_empty() => {
                lacking = NoAgent::LoggedIn { agent: profile.name.clone(), hint: profile.login_hint.clone() };
            }
            Some(_) | None => {}
        }
    }
    let built_in = profiles.iter().find(|profile| is_built_in(profile));
    if let Some((profile, found)) = built_in.and_then(|profile| Some((profile, detect(profile, config).found?))) {
        return Ok(Agent { profile: profile.clone(), program: found.program, chosen: Chosen::BuiltIn(lacking) });
    }
    Err(CommandError::new(ExitCode::NoAgent, "no agent is installed; `gembridge agents` shows how to get one"))
}

/// Whether a login was found that somebody gave: an agent that works without one is not ready for that reason alone.
fn is_logged_in(profile: &Profile, detection: &Detection) -> bool {
    let Some(found) = &detection.login else { return false };
    let is_given = |login: &Login| login.file.is_some() || !login.when.is_empty();
    profile.login.iter().any(|login| login.kind == found.kind && login.title == found.title && is_given(login))
}

/// The agent with this name, which must be installed.
pub fn named(name: &str, profiles: &[Profile], config: &Config) -> Result<Agent, CommandError> {
    let profile = by_name(name, profiles)?;
    let detection = detect(profile, config);
    let missing = missing(&detection, profile).unwrap_or_default();
    let found = detection.found.ok_or_else(|| CommandError::new(ExitCode::NoAgent, missing))?;
    Ok(Agent { profile: profile.clone(), program: found.program, chosen: Chosen::Named })
}

/// The sentence for a program that is not there, with the setting that names another.
pub fn missing(detection: &Detection, profile: &Profile) -> Option<String> {
    let sentence = detection.missing(profile)?;
    Some(format!("{sentence}, or set `command` of `[agents.{}]`", profile.name))
}

fn detect(profile: &Profile, config: &Config) -> Detection {
    let detection = detect::detect(profile, &config.environment.to_map(), &Disk, &own_binary());
    for warning in &detection.warnings {
        tracing::warn!("{warning}");
    }
    detection
}

fn by_name<'a>(name: &str, profiles: &'a [Profile]) -> Result<&'a Profile, CommandError> {
    profiles.iter().find(|profile| profile.name == name).ok_or_else(|| {
        let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        let way_out = match nearest(name, &names) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("known: `{}`; one of your own needs `[agents.NAME]` with `command`", names.join("`, `")),
        };
        CommandError::usage(format!("agent `{name}` is not known; {way_out}"))
    })
}

/// Asks programs for their versions, all at once. A program that does not tell has none.
pub fn versions(programs: &[(Profile, PathBuf)], config: &Config) -> Vec<Option<Version>> {
    let asked = runtime().and_then(|runtime| {
        let environment = config.environment.to_map();
        runtime.block_on(async {
            let spawner = Spawner::new(GuardProgram::this_binary())?;
            let mut versions = Vec::new();
            let mut asked = tokio::task::JoinSet::new();
            for (place, (profile, program)) in programs.iter().cloned().enumerate() {
                versions.push(None);
                let (environment, spawner) = (environment.clone(), spawner.clone());
                asked.spawn(
                    async move { (place, detect::version_of(&profile, &program, &environment, &spawner).await) },
                );
            }
            while let Some(answer) = asked.join_next().await {
                match answer {
                    Ok((place, Ok(version))) => versions[place] = Some(version),
                    Ok((place, Err(error))) => tracing::info!(agent = programs[place].0.name, %error, "no version"),
                    Err(error) => tracing::warn!(%error, "asking for a version failed"),
                }
            }
            spawner.shut_down().await;
            Ok(versions)
        })
    });
    asked.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot ask programs for their versions");
        vec![None; programs.len()]
    })
}

/// An event loop for a question or two.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// This program; the path of last resort is looked up on `PATH` like any other.
fn own_binary() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| Path::new("gembridge").to_owned())
}
