//! Which agents there are on this machine, and which one is meant.

use std::path::{Path, PathBuf};

use gembridge_drivers::detect::{self, Detection, Disk};
use gembridge_drivers::profile::{Profile, Version, nearest};
use gembridge_process::{GuardProgram, Spawner};

use crate::config::Config;
use crate::exit::{CommandError, ExitCode};

/// Taken when nobody names an agent and it is installed.
const PREFERRED: &str = "gemini";

/// Taken when nobody names an agent and no other is there.
const BUILT_IN: &str = "demo";

/// The agent that a command works with.
#[derive(Clone, Debug)]
pub struct Agent {
    pub profile: Profile,
    pub program: PathBuf,
    pub chosen: Chosen,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// By a flag, a variable or the settings.
    Named,
    /// It is the preferred one, and it is installed.
    Preferred,
    /// Nothing else is there: every face says so.
    NothingElse,
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

/// The agent that is named, else the preferred one if it is installed, else the built-in one.
pub fn choose(profiles: &[Profile], config: &Config) -> Result<Agent, CommandError> {
    if let Some(name) = &config.settings.default.agent {
        return named(name, profiles, config);
    }
    for (name, chosen) in [(PREFERRED, Chosen::Preferred), (BUILT_IN, Chosen::NothingElse)] {
        let profile = profiles.iter().find(|profile| profile.name == name);
        if let Some((profile, found)) = profile.and_then(|profile| Some((profile, detect(profile, config).found?))) {
            return Ok(Agent { profile: profile.clone(), program: found.program, chosen });
        }
    }
    Err(CommandError::new(ExitCode::NoAgent, "no agent is installed; `gembridge agents` shows how to get one"))
}

/// The agent with this name, which must be installed.
pub fn named(name: &str, profiles: &[Profile], config: &Config) -> Result<Agent, CommandError> {
    let profile = by_name(name, profiles)?;
    let detection = detect(profile, config);
    let missing = detection.missing(profile).unwrap_or_default();
    let found = detection.found.ok_or_else(|| CommandError::new(ExitCode::NoAgent, missing))?;
    Ok(Agent { profile: profile.clone(), program: found.program, chosen: Chosen::Named })
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
