//! From `[agents]` to profiles: the built-in agents with the operator's changes, and the operator's own.

use std::path::{Path, PathBuf};

use gembridge_drivers::profile::{AgentConfig, Profile, ProfileError};

use super::{Config, ConfigError, Folders, Key, Source};

pub fn profiles(config: &Config) -> Result<Vec<Profile>, ConfigError> {
    // The built-in profiles are part of this binary; a broken one is our own mistake, told like any other.
    let known = Profile::builtin().map_err(|error| ConfigError::Invalid(error.to_string()))?;
    let mut profiles: Vec<_> =
        known.iter().filter(|profile| !config.settings.agents.contains_key(&profile.name)).cloned().collect();
    for (name, chosen) in &config.settings.agents {
        let chosen = without_hint(config, name, chosen, &known);
        let profile =
            Profile::custom(name, &chosen, &known).map_err(|error| placed(config, name, &with_way_out(&error)))?;
        if let Some(path) = open_to_guests(&chosen, &config.folders) {
            let path = path.display();
            let problem =
                format!("`{path}` holds gembridge's own files, which no guest may reach; name a folder below it");
            return Err(placed(config, name, &problem));
        }
        profiles.push(profile);
    }
    profiles.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(profiles)
}

/// A program named by the profile's own variable is a hint, passed over with a warning when it is not there;
/// detection reads that variable itself. Named anywhere else it is an order.
fn without_hint(config: &Config, name: &str, chosen: &AgentConfig, known: &[Profile]) -> AgentConfig {
    let source = config.source(&Key::dotted("agents").child(name).child("command"));
    let named_by = match source {
        Source::Environment { variable } | Source::DotEnv { variable, .. } => Some(variable),
        Source::Default | Source::ModelsFile { .. } | Source::File { .. } | Source::Flag { .. } => None,
    };
    let hint = known.iter().find(|profile| profile.name == name).and_then(|profile| profile.command.variable.as_ref());
    let mut chosen = chosen.clone();
    if named_by.is_some() && named_by == hint {
        chosen.command = None;
    }
    chosen
}

/// A path of `guest_read` or `guest_write` that has a folder of ours in it, or is in one.
fn open_to_guests<'a>(chosen: &'a AgentConfig, folders: &Folders) -> Option<&'a Path> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let ours = [real(&folders.config), real(&folders.state)];
    let mut named = chosen.guest_read.iter().chain(&chosen.guest_write).map(PathBuf::as_path);
    named.find(|path| ours.iter().any(|ours| ours.starts_with(real(path)) || real(path).starts_with(ours)))
}

/// What is wrong with an agent, with the setting that mends it.
fn with_way_out(error: &ProfileError) -> String {
    match error {
        ProfileError::NoCommand { agent, .. } => {
            format!("{error}; add `command = \"my-agent\"` or `url = \"http://…\"` to `[agents.{agent}]`")
        }
        other => other.to_string(),
    }
}

/// The error with the first line that speaks of the agent, where a file does.
fn placed(config: &Config, name: &str, problem: &str) -> ConfigError {
    let section = Key::dotted("agents").child(name);
    let of_agent = |key: &Key| key.parts().starts_with(section.parts());
    let line = config.source_of.iter().filter(|(key, _)| of_agent(key)).find_map(|(_, source)| match source {
        Source::File { path, line } | Source::DotEnv { path, line, .. } => Some((path.clone(), *line)),
        Source::Default | Source::ModelsFile { .. } | Source::Environment { .. } | Source::Flag { .. } => None,
    });
    match line {
        Some((path, line)) => ConfigError::InFile { path, line, problem: problem.to_owned() },
        None => ConfigError::Invalid(problem.to_owned()),
    }
}
