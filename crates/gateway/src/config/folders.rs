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
    /// Whether one of them belongs to another user, or holds another user's files. Those that are missing are made later.
    pub fn check_owners(&self) -> Result<(), ConfigError> {
        [&self.config, &self.state, &self.cache].into_iter().try_for_each(|folder| check_owner(folder))
    }

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

/// Makes `folder` if it is missing, and private if it is not. One that another user owns, or where another user's files
/// lie, is refused.
pub fn ensure_private(folder: &Path) -> Result<(), ConfigError> {
    make_private(folder, rustix::process::geteuid().as_raw())
}

/// Whose files are believed: this user's own, and those of the system's administrator.
pub fn is_trusted_owner(owner: u32) -> bool {
    owner == rustix::process::geteuid().as_raw() || owner == ROOT
}

/// What is wrong with a folder that is there already. Changes nothing.
fn check_owner(folder: &Path) -> Result<(), ConfigError> {
    match fs::metadata(folder) {
        Ok(found) if found.is_dir() => judge(folder, &found, rustix::process::geteuid().as_raw()).map(drop),
        Ok(_) | Err(_) => Ok(()),
    }
}

const ROOT: u32 = 0;
/// Write permission of the group and of everybody.
const OTHERS_WRITE: u32 = 0o022;

#[derive(Debug, PartialEq, Eq)]
enum Judged {
    AsItShouldBe,
    /// Ours, and open to others in some way.
    TooOpen,
}

fn judge(folder: &Path, found: &fs::Metadata, user: u32) -> Result<Judged, ConfigError> {
    let (owner, mode) = (found.uid(), found.mode() & 0o777);
    if owner == user {
        if mode & OTHERS_WRITE != 0 {
            check_contents(folder, user)?;
        }
        return Ok(if mode == PRIVATE { Judged::AsItShouldBe } else { Judged::TooOpen });
    }
    if owner != ROOT {
        return Err(ConfigError::ForeignOwner { path: folder.to_owned(), owner });
    }
    if mode & OTHERS_WRITE != 0 {
        return Err(ConfigError::OpenFolder { path: folder.to_owned() });
    }
    Ok(Judged::AsItShouldBe)
}

/// Others could write into the folder: what they left there must not be taken for ours.
fn check_contents(folder: &Path, user: u32) -> Result<(), ConfigError> {
    let unreadable = |error| ConfigError::Unreadable { path: folder.to_owned(), error };
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let owner = fs::symlink_metadata(&path).map_err(unreadable)?.uid();
        if owner != user && owner != ROOT {
            return Err(ConfigError::ForeignOwner { path, owner });
        }
    }
    Ok(())
}

fn make_private(folder: &Path, user: u32) -> Result<(), ConfigError> {
    let unwritable = |error| ConfigError::Unwritable { path: folder.to_owned(), error };
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(unwritable)?;
    }
    match fs::DirBuilder::new().mode(PRIVATE).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.map_err(unwritable),
    }
    let found = fs::metadata(folder).map_err(unwritable)?;
    if !found.is_dir() {
        return Err(unwritable(io::Error::from(io::ErrorKind::NotADirectory)));
    }
    if judge(folder, &found, user)? == Judged::TooOpen {
        if found.mode() & OTHERS_WRITE != 0 {
            tracing::warn!("`{}` could be written by other users; it is private now", folder.display());
        }
        fs::set_permissions(folder, fs::Permissions::from_mode(PRIVATE)).map_err(unwritable)?;
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

    #[test]
    fn f19_a_folder_of_another_user_is_refused_with_the_way_out() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("gembridge");
        ensure_private(&folder).unwrap();
        let owner = fs::metadata(&folder).unwrap().uid();
        // Somebody else asks: the owner is neither them nor the administrator.
        let (folder, found) = match owner {
            ROOT => {
                std::os::unix::fs::chown(&folder, Some(65_534), None).unwrap();
                (folder.clone(), 65_534)
            }
            own => (folder.clone(), own),
        };
        let error = make_private(&folder, found + 1).unwrap_err().to_string();
        assert!(error.contains(&format!("belongs to user {found}")) && error.contains("chown"), "{error}");
        assert!(make_private(&folder, found).is_ok());
    }

    #[test]
    fn f19_a_folder_that_others_can_write_is_made_private_unless_their_files_lie_in_it() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("gembridge");
        ensure_private(&folder).unwrap();
        fs::write(folder.join("keys.toml"), "").unwrap();
        let owner = fs::metadata(&folder).unwrap().uid();
        let open = || fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        open();
        make_private(&folder, owner).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        // A link to nowhere is a file of its own, and belongs to whoever made it.
        open();
        assert!(check_contents(&folder, owner).is_ok());
        if owner == ROOT {
            std::os::unix::fs::chown(folder.join("keys.toml"), Some(65_534), None).unwrap();
            assert!(make_private(&folder, owner).unwrap_err().to_string().contains("keys.toml"));
        } else {
            assert!(check_contents(&folder, owner + 1).unwrap_err().to_string().contains("keys.toml"));
        }
    }

    #[test]
    fn f19_the_administrators_folder_is_good_as_long_as_nobody_else_writes_it() {
        let found = fs::metadata("/").unwrap();
        assert_eq!(judge(Path::new("/"), &found, 65_533).unwrap(), Judged::AsItShouldBe);
        let found = fs::metadata("/tmp").unwrap();
        assert_eq!(found.uid(), ROOT);
        assert!(judge(Path::new("/tmp"), &found, 65_533).unwrap_err().to_string().contains("written by other users"));
    }
}
