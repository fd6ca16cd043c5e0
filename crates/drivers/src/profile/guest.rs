//! The same agent for guests: a home of its own, none of the operator's folders, and what its process may reach in spite of the fence.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::template::{self, Style, Values};
use super::{ChatTools, Environment, Profile, ProfileError, Tools};

/// Whose home an agent is started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HomeOwner {
    /// The operator's, unless the login needs nothing of it.
    Operator,
    /// One that is private to the process, with every folder in which programs keep settings, data and logins.
    Guest,
}

/// The variables that name a home and the folders in it, with their places in a private one.
pub(super) const HOME_FOLDERS: &[(&str, &str)] = &[
    ("HOME", ""),
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
];

/// Variables that name further certificates, whatever the agent.
const CERTIFICATES: &[&str] = &["NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR", "SSL_CERT_FILE"];

/// What a guest's process reaches beside its own folders, its program and the libraries of the system.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fence {
    /// Files and folders that it reads, with placeholders.
    pub read: Vec<String>,
    /// Folders that it writes to, with placeholders.
    pub write: Vec<String>,
    /// Variables whose values are files or folders that it reads: what the operator names for serving others.
    pub read_variables: Vec<String>,
    /// Variables whose values are programs that it starts.
    pub program_variables: Vec<String>,
    /// What the operator's settings add, taken as it is.
    #[serde(skip)]
    pub read_also: Vec<PathBuf>,
    #[serde(skip)]
    pub write_also: Vec<PathBuf>,
}

/// The same for one launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    pub readable: Vec<PathBuf>,
    pub writable: Vec<PathBuf>,
    /// Programs that come with their installation.
    pub programs: Vec<PathBuf>,
}

impl Fence {
    pub(super) fn check(&self, agent: &str) -> Result<(), ProfileError> {
        self.read.iter().chain(&self.write).try_for_each(|path| template::check(agent, path))
    }

    /// `environment` is that of the child.
    pub(super) fn reach(&self, values: &Values<'_>, environment: &Environment) -> Result<Reach, ProfileError> {
        let fill = |path: &String| template::fill(path, values, Style::Plain).map(PathBuf::from);
        let named = |variable: &str| environment.get(variable).map(String::as_str).unwrap_or_default();
        let paths = |list| std::env::split_paths(list).filter(|path| path.is_absolute()).collect::<Vec<_>>();
        let variables = self.read_variables.iter().map(String::as_str).chain(CERTIFICATES.iter().copied());
        let mut readable = self.read.iter().map(fill).collect::<Result<Vec<_>, _>>()?;
        readable.extend(variables.flat_map(|variable| paths(named(variable))));
        readable.extend(self.read_also.iter().cloned());
        let mut writable = self.write.iter().map(fill).collect::<Result<Vec<_>, _>>()?;
        writable.extend(self.write_also.iter().cloned());
        let programs = self.program_variables.iter().flat_map(|variable| paths(named(variable))).collect();
        Ok(Reach { readable, writable, programs })
    }
}

impl Tools {
    /// Whether nothing that a client says in chat makes the agent open a file, also where no fence keeps it from that.
    pub fn reach_no_file(&self) -> bool {
        match self.in_chat {
            ChatTools::Off => !self.opens_named_files,
            ChatTools::DeniedByName | ChatTools::Unknown | ChatTools::On => false,
        }
    }
}

impl Profile {
    /// The login that a guest's process finds: by variables alone, since its home is empty.
    pub fn find_guest_login(&self, environment: &Environment) -> Option<super::LoginFound> {
        self.find_login(environment, &|_: &Path| false)
    }
}

/// The folders of a private home, by the variables that name them.
pub(super) fn home_folders(state: &Path) -> impl Iterator<Item = (&'static str, PathBuf)> + '_ {
    // `join("")` would leave a slash at the end.
    let place = |below: &str| if below.is_empty() { state.to_owned() } else { state.join(below) };
    HOME_FOLDERS.iter().map(move |(variable, below)| (*variable, place(below)))
}
