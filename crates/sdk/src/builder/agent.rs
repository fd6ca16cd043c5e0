//! Which agent an adapter is for: a profile that ships, or a program of the caller's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gembridge_drivers::detect::{self, Disk};
use gembridge_drivers::profile::{AgentConfig, Environment, Profile};

use crate::error::BuildError;
use crate::helper_process as helper;

#[derive(Clone, Debug)]
pub(crate) enum AgentChoice {
    Known(&'static str),
    Custom {
        name: String,
        program: PathBuf,
    },
    /// Whatever agent a gateway serves, through the relay that comes with the gateway.
    Gateway {
        url: String,
    },
}

/// What holds for an agent if the caller says nothing.
pub(crate) struct Defaults {
    pub startup: Duration,
    pub quiet: Duration,
}

/// The agent that is a part of this library.
const BUILT_IN: &str = "demo";

/// The program that relays to a gateway, and by how many sessions one of it is shared.
const GATEWAY: &str = "gembridge";
const SESSIONS_OF_A_RELAY: u32 = 16;

impl AgentChoice {
    pub(crate) fn is_built_in(&self) -> bool {
        matches!(self, Self::Known(BUILT_IN))
    }

    pub(crate) fn profile(&self) -> Result<Profile, BuildError> {
        let wrong = |error: gembridge_drivers::profile::ProfileError| BuildError::Agent(error.to_string());
        let mut profile = match self {
            Self::Known(name) => {
                let known = Profile::builtin().map_err(wrong)?;
                let found = known.into_iter().find(|profile| profile.name == *name);
                found.ok_or_else(|| BuildError::Agent(format!("there is no profile `{name}`")))?
            }
            Self::Custom { name, program } => {
                let command = Some(program.display().to_string());
                Profile::custom(name, &AgentConfig { command, ..AgentConfig::default() }, &[]).map_err(wrong)?
            }
            Self::Gateway { url } => {
                let args = Some(vec!["connect".to_owned(), websocket(url)]);
                let config = AgentConfig { command: Some(GATEWAY.to_owned()), args, ..AgentConfig::default() };
                let mut profile = Profile::custom("gateway", &config, &[]).map_err(wrong)?;
                "install gembridge, whose `gembridge connect` reaches the gateway".clone_into(&mut profile.install);
                profile.limits.sessions_per_process = SESSIONS_OF_A_RELAY;
                // Its agent has tools of the gateway's own server already, under the usual name.
                "program-tools".clone_into(&mut profile.mcp.server_name);
                profile
            }
        };
        if self.is_built_in() {
            profile.environment.set.insert(helper::MARK.0.to_owned(), helper::MARK.1.to_owned());
        }
        Ok(profile)
    }

    /// Without a workspace there is nothing to tell a gateway: a private folder of this library means nothing to its agent.
    pub(crate) fn leave_out_folder(&self, profile: &mut Profile) {
        if let Self::Gateway { .. } = self {
            profile.command.args.push("--no-folder".to_owned());
        }
    }

    pub(crate) fn defaults(&self) -> Defaults {
        let (startup, quiet) = match self {
            // It does nothing after its last word.
            Self::Known(BUILT_IN) => (10, 0),
            Self::Known("gemini") => (15, 500),
            Self::Known(_) => (30, 500),
            Self::Custom { .. } => (10, 500),
            // The gateway has waited already.
            Self::Gateway { .. } => (30, 0),
        };
        Defaults { startup: Duration::from_secs(startup), quiet: Duration::from_millis(quiet) }
    }
}

/// The address of the WebSocket, where people name the gateway as they do for HTTP.
fn websocket(url: &str) -> String {
    match url.split_once("://") {
        Some(("http", rest)) => format!("ws://{rest}"),
        Some(("https", rest)) => format!("wss://{rest}"),
        _ => url.to_owned(),
    }
}

pub(crate) fn find_program(profile: &Profile, environment: &Environment, own: &Path) -> Result<PathBuf, BuildError> {
    let detected = detect::detect(profile, environment, &Disk, own);
    let missing = || detected.missing(profile).unwrap_or_default();
    match &detected.found {
        Some(found) => Ok(found.program.clone()),
        None => Err(BuildError::NotInstalled(missing())),
    }
}
