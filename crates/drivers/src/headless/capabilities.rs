//! What an agent can do without a protocol, and whether it is there.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::detect::{Probe, detect};
use crate::profile::{Driver, Environment, Profile};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing that is so or is not")]
pub struct Capabilities {
    pub agent: String,
    /// A prompt that begins with `/` is a command to it.
    pub slash_commands: bool,
    /// Models that it is known to take.
    pub models: Vec<String>,
    pub web_search: bool,
    /// Its thoughts are among its events.
    pub thinking: bool,
    pub installed: bool,
    pub path: Option<PathBuf>,
}

/// `None` for an agent that does not run headless. Nothing is started.
pub fn capabilities(profile: &Profile, environment: &Environment, probe: &dyn Probe) -> Option<Capabilities> {
    let headless = profile.headless.clone()?;
    let profile = profile.clone().with_driver(Driver::Headless).ok()?;
    let path = detect(&profile, environment, probe, Path::new("")).found.map(|found| found.program);
    Some(Capabilities {
        agent: profile.name,
        slash_commands: headless.slash_commands,
        models: profile.model.known,
        web_search: headless.web_search,
        thinking: headless.thinking,
        installed: path.is_some(),
        path,
    })
}
