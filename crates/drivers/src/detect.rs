//! Which agents are installed, where, and with which login: decided from a given environment and a look at which files exist.

mod glob;
mod installation;
mod search_path;
mod probe;
mod version;

use std::path::{Path, PathBuf};

use crate::profile::{Environment, LoginFound, Profile};

pub use installation::installation;
pub use probe::{Disk, Probe};
pub use version::{VersionError, version_of};

/// What was found out about one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detection {
    pub agent: String,
    pub found: Option<Found>,
    pub login: Option<LoginFound>,
    /// What the operator should know, such as a variable that names nothing.
    pub warnings: Vec<String>,
}

/// A program, and why it is this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub program: PathBuf,
    pub by: FoundBy,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundBy {
    /// The profile or the operator's configuration gave its path.
    Command,
    /// This variable named it.
    Variable(String),
    Path,
    /// One of the folders where package managers put programs.
    UsualPlace,
    /// It is a part of our own binary.
    OwnBinary,
    /// The operator's configuration gave the address of a server; it stands in the place of the program.
    Address,
}

/// Looks for one agent. `own_binary` is the program that a built-in agent runs in.
pub fn detect(profile: &Profile, environment: &Environment, probe: &dyn Probe, own_binary: &Path) -> Detection {
    let mut search = Search { environment, probe, warnings: Vec::new() };
    let address = profile.a2a.as_ref().and_then(|a2a| a2a.address.as_ref());
    let found = if let Some(address) = address {
        Some(Found { program: PathBuf::from(address.to_string()), by: FoundBy::Address })
    } else if profile.command.own_binary {
        Some(Found { program: own_binary.to_owned(), by: FoundBy::OwnBinary })
    } else {
        search.by_variable(profile).or_else(|| search.by_names(profile))
    };
    let login = profile.find_login(environment, &|path| probe.exists(path));
    Detection { agent: profile.name.clone(), found, login, warnings: search.warnings }
}

impl Detection {
    /// The sentence for a missing program.
    pub fn missing(&self, profile: &Profile) -> Option<String> {
        let name = profile.command.names.first().map_or("", String::as_str);
        let agent = &self.agent;
        self.found.is_none().then(|| {
            let way_out = match profile.install.as_str() {
                "" => "install it".to_owned(),
                sentence if sentence.contains('`') => sentence.to_owned(),
                command => format!("run `{command}`"),
            };
            format!("agent `{agent}`: `{name}` was not found; {way_out}")
        })
    }
}

struct Search<'a> {
    environment: &'a Environment,
    probe: &'a dyn Probe,
    warnings: Vec<String>,
}

impl Search<'_> {
    fn by_variable(&mut self, profile: &Profile) -> Option<Found> {
        let variable = profile.command.variable.as_deref()?;
        let value = self.environment.get(variable).map(|value| value.trim()).filter(|value| !value.is_empty())?;
        let program = if value.contains('/') {
            self.executable(&self.expand_home(value))
        } else {
            self.by_name(value).map(|found| found.program)
        };
        if program.is_none() {
            let shown = value.escape_debug();
            self.warnings
                .push(format!("`{variable}` names `{shown}`, which is not an executable file; looking elsewhere"));
        }
        Some(Found { program: program?, by: FoundBy::Variable(variable.to_owned()) })
    }

    fn by_names(&mut self, profile: &Profile) -> Option<Found> {
        profile.command.names.iter().find_map(|name| {
            if !name.contains('/') {
                return self.by_name(name);
            }
            let program = self.executable(&self.expand_home(name));
            if program.is_none() {
                let agent = &profile.name;
                self.warnings.push(format!("`command` of agent `{agent}` is `{name}`, which is not an executable file; give a full path or a name on PATH"));
            }
            Some(Found { program: program?, by: FoundBy::Command })
        })
    }

    /// A bare name: PATH first, then the usual places.
    fn by_name(&self, name: &str) -> Option<Found> {
        let in_folder = |folder: PathBuf| self.executable(&folder.join(name));
        if let Some(program) = search_path::on_path(self.environment).find_map(in_folder) {
            return Some(Found { program, by: FoundBy::Path });
        }
        let program = search_path::usual(self.environment, self.probe).find_map(in_folder)?;
        Some(Found { program, by: FoundBy::UsualPlace })
    }

    /// Only full paths: what a relative one means depends on where we were started.
    fn executable(&self, path: &Path) -> Option<PathBuf> {
        (path.is_absolute() && self.probe.is_executable(path)).then(|| path.to_owned())
    }

    fn expand_home(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), self.environment.get("HOME")) {
            (Some(rest), Some(home)) => Path::new(home).join(rest),
            _ => PathBuf::from(path),
        }
    }
}
