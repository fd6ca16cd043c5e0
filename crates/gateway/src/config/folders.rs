//! The folders that belong to gembridge, each private to its user.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::env::Environment;
use super::error::ConfigError;

const PRIVATE: u32 = 0o700;

#[derive(Clone, Debug)]
pub struct Folders {
    /// `gembridge.toml`, `.env`, `models.json`, `keys.toml`, `origins.toml`, `trust.toml`.
    pub config: PathBuf,
    /// Sessions, the audit log, whatever must survive.
    pub state: PathBuf,
    /// What can be made again.
    pub cache: PathBuf,
}

impl Folders {
    /// The XDG folders. A relative path in a variable counts as unset: it would mean another folder in every project.
    pub fn from_environment(environment: &Environment) -> Result<Self, ConfigError> {
        let absolute = |name: &str| environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("HOME");
        let folder = |variable: &'static str, below_home: &str| {
            absolute(variable)
                .or_else(|| home.as_ref().map(|home| home.join(below_home)))
                .map(|base| base.join("gembridge"))
                .ok_or(ConfigError::NoFolder { variable })
        };
        Ok(Self {
            config: folder("XDG_CONFIG_HOME", ".config")?,
            state: folder("XDG_STATE_HOME", ".local/state")?,
            cache: folder("XDG_CACHE_HOME", ".cache")?,
        })
    }
}

impl Folders {
    /// The sessions' records and logs.
    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }

    /// Who did what, for whoever must know later.
    pub fn audit(&self) -> PathBuf {
        self.state.join("audit.jsonl")
    }

    /// Where agents without a workspace get their private folders.
    pub fn runs(&self) -> PathBuf {
        self.state.join("runs")
    }
}

/// Makes `folder` if it is missing, and private if it is not.
pub fn ensure_private(folder: &Path) -> Result<(), ConfigError> {
    make_private(folder).map_err(|error| ConfigError::Unwritable { path: folder.to_owned(), error })
}

fn make_private(folder: &Path) -> io::Result<()> {
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::DirBuilder::new().mode(PRIVATE).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let found = fs::metadata(folder)?;
    if !found.is_dir() {
        return Err(io::Error::from(io::ErrorKind::NotADirectory));
    }
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    if is_ours && found.mode() & 0o777 != PRIVATE {
        fs::set_permissions(folder, fs::Permissions::from_mode(PRIVATE))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_from_xdg_or_from_home() {
        let folders =
            Folders::from_environment(&Environment::from([("HOME", "/h"), ("XDG_STATE_HOME", "/s")])).unwrap();
        assert_eq!(folders.config, Path::new("/h/.config/gembridge"));
        assert_eq!(folders.state, Path::new("/s/gembridge"));
        assert_eq!(folders.cache, Path::new("/h/.cache/gembridge"));
    }

    #[test]
    fn s20_a_relative_folder_in_a_variable_is_not_used() {
        let relative = Environment::from([("HOME", "/h"), ("XDG_CONFIG_HOME", ".")]);
        assert_eq!(Folders::from_environment(&relative).unwrap().config, Path::new("/h/.config/gembridge"));
        let error = Folders::from_environment(&Environment::from([("HOME", "here")])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "neither `HOME` nor `XDG_CONFIG_HOME` is set to an absolute path; set one of them"
        );
    }

    #[test]
    fn s14_a_folder_is_made_private_even_if_it_was_open() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b/gembridge");
        ensure_private(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        ensure_private(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_file_in_the_place_of_a_folder_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("gembridge");
        fs::write(&file, "").unwrap();
        assert!(ensure_private(&file).unwrap_err().to_string().contains("not a directory"));
    }
}
