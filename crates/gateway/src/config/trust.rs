//! The folders in which the operator lets agents work: `trust.toml` of the config folder.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gembridge_core::model::SessionId;
use serde::Serialize;
use toml::Value;

use super::entries::{self, Entries, Report};
use super::error::ConfigError;
use super::folders::ensure_private;
use super::private_file;

/// One folder, under its real name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
struct Folder(PathBuf);

impl entries::Entry for Folder {
    const LIST: &'static str = "folders";
    const WRITTEN_BY: &'static str = "gembridge trust add";

    fn decode(value: &Value) -> Result<Self, &'static str> {
        let path = value.as_str().map(PathBuf::from).filter(|path| path.is_absolute());
        path.map(Self).ok_or("this is not the absolute path of a folder")
    }
}

/// The list, as it is on disk.
#[derive(Clone, Debug)]
pub struct Trust(Entries<Folder>);

impl Trust {
    /// A file that is not there trusts nothing.
    pub fn load(config_folder: &Path) -> Result<Self, ConfigError> {
        Entries::load(path(config_folder)).map(Self)
    }

    pub fn folders(&self) -> Vec<&Path> {
        self.0.good.iter().map(|folder| folder.0.as_path()).collect()
    }

    /// What in it is damaged.
    pub fn reports(&self) -> Vec<Report> {
        self.0.reports()
    }

    /// Whether `folder`, with its links resolved, is a trusted folder or lies in one.
    pub fn covers(&self, folder: &Path) -> bool {
        folder.canonicalize().is_ok_and(|real| self.0.good.iter().any(|trusted| real.starts_with(&trusted.0)))
    }
}

fn path(config_folder: &Path) -> PathBuf {
    config_folder.join("trust.toml")
}

/// Adds a folder under its real name, which is returned.
pub fn add(config_folder: &Path, folder: &Path) -> Result<PathBuf, ConfigError> {
    let real = folder.canonicalize().map_err(|error| ConfigError::Unreadable { path: folder.to_owned(), error })?;
    if !real.is_dir() {
        return Err(ConfigError::Invalid(format!(
            "`{}` is not a folder; name the folder that agents may work in",
            real.display()
        )));
    }
    if real.parent().is_none() {
        return Err(ConfigError::Invalid(
            "`/` cannot be trusted as a whole; name the folder that agents may work in".to_owned(),
        ));
    }
    let added = Folder(real);
    entries::change(&path(config_folder), |entries: &mut Entries<Folder>| {
        if !entries.good.contains(&added) {
            entries.good.push(added.clone());
            entries.good.sort();
        }
        Ok(())
    })?;
    Ok(added.0)
}

/// Lets the next session that asks for it work in a folder that is not on the list. Only whoever may write the private state
/// folder can say so, as with the list itself.
pub fn allow_once(state_folder: &Path, folder: &Path) -> Result<(), ConfigError> {
    let real = folder.canonicalize().map_err(|error| ConfigError::Unreadable { path: folder.to_owned(), error })?;
    let allowed = state_folder.join(ONCE);
    ensure_private(&allowed)?;
    let path = allowed.join(SessionId::new().to_string());
    let created = fs::File::options().write(true).create_new(true).mode(0o600).open(&path);
    let written = created.and_then(|mut file| file.write_all(real.as_os_str().as_encoded_bytes()));
    written.map_err(|error| ConfigError::Unwritable { path, error })
}

/// Whether a folder, under its real name, was allowed once a moment ago. It is not any more afterwards.
pub fn take_once(state_folder: &Path, real: &Path) -> bool {
    let Ok(allowed) = fs::read_dir(state_folder.join(ONCE)) else { return false };
    allowed.flatten().take(MOST_ONCE).any(|entry| {
        let is_new = entry
            .metadata()
            .and_then(|file| file.modified())
            .is_ok_and(|at| at.elapsed().unwrap_or_default() < LONGEST_ONCE);
        let is_it =
            private_file::read(&entry.path()).is_ok_and(|file| file.bytes == real.as_os_str().as_encoded_bytes());
        if !is_it && is_new {
            return false;
        }
        // Whoever removes it has it. What nobody came for goes as well.
        let is_removed = fs::remove_file(entry.path()).is_ok();
        is_it && is_new && is_removed
    })
}

/// The folder of what is allowed once, how much of it is looked at, and how long it holds.
const ONCE: &str = "allowed-once";
const MOST_ONCE: usize = 64;
const LONGEST_ONCE: Duration = Duration::from_mins(1);

/// Takes a folder off the list, which may be gone from disk by now.
pub fn remove(config_folder: &Path, folder: &Path) -> Result<PathBuf, ConfigError> {
    let named = folder.canonicalize().or_else(|_| std::path::absolute(folder)).unwrap_or_else(|_| folder.to_owned());
    let removed = Folder(named);
    entries::change(&path(config_folder), |entries: &mut Entries<Folder>| {
        if !entries.good.contains(&removed) {
            return Err(ConfigError::Invalid(format!(
                "`{}` is not on the trust list; `gembridge trust list` shows what is",
                removed.0.display()
            )));
        }
        entries.good.retain(|trusted| *trusted != removed);
        Ok(())
    })?;
    Ok(removed.0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_trusted_folder_covers_what_lies_in_it_and_nothing_beside_it() {
        let root = tempfile::tempdir().unwrap();
        let config = root.path().join("config");
        for folder in ["ws/inner", "ws-evil"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(root.path().join("ws-evil"), root.path().join("ws/link")).unwrap();
        add(&config, &root.path().join("ws")).unwrap();
        let trust = Trust::load(&config).unwrap();
        assert!(trust.covers(&root.path().join("ws")) && trust.covers(&root.path().join("ws/inner")));
        for outside in ["ws-evil", "ws/link", "ws/missing", "ws/../ws-evil", ""] {
            assert!(!trust.covers(&root.path().join(outside)), "{outside}");
        }
    }

    #[test]
    fn adding_twice_lists_once_and_removing_forgets() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("ws");
        fs::create_dir(&folder).unwrap();
        let real = add(root.path(), &folder).unwrap();
        add(root.path(), &folder).unwrap();
        assert_eq!(Trust::load(root.path()).unwrap().folders(), [real]);
        fs::remove_dir(&folder).unwrap();
        remove(root.path(), &folder).unwrap();
        assert!(Trust::load(root.path()).unwrap().folders().is_empty());
        assert!(remove(root.path(), &folder).unwrap_err().to_string().contains("not on the trust list"));
    }

    #[test]
    fn what_is_allowed_once_is_allowed_once() {
        let root = tempfile::tempdir().unwrap();
        let (folder, other) = (root.path().join("ws"), root.path().join("other"));
        fs::create_dir(&folder).unwrap();
        fs::create_dir(&other).unwrap();
        let (folder, other) = (folder.canonicalize().unwrap(), other.canonicalize().unwrap());
        let state = root.path().join("state");
        assert!(!take_once(&state, &folder));
        allow_once(&state, &folder).unwrap();
        assert!(!take_once(&state, &other), "nothing else is");
        assert!(take_once(&state, &folder));
        assert!(!take_once(&state, &folder));
        // What nobody came for within a minute is not allowed any more.
        allow_once(&state, &folder).unwrap();
        let left = fs::read_dir(state.join(ONCE)).unwrap().next().unwrap().unwrap().path();
        let before = std::time::SystemTime::now() - LONGEST_ONCE * 2;
        fs::File::options().write(true).open(&left).unwrap().set_modified(before).unwrap();
        assert!(!take_once(&state, &folder));
        assert!(!left.exists());
    }

    #[test]
    fn what_cannot_be_trusted_is_refused_with_the_way_out() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let add = |folder: &Path| add(root.path(), folder);
        assert!(add(&file).unwrap_err().to_string().contains("is not a folder"));
        assert!(add(Path::new("/")).unwrap_err().to_string().contains("cannot be trusted as a whole"));
        assert!(add(&root.path().join("missing")).unwrap_err().to_string().contains("cannot read"));
    }

    #[test]
    fn f5_a_damaged_folder_costs_itself_and_a_broken_list_is_an_error_with_its_line() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("trust.toml"), "canary = 1\nfolders = ['/w',\n  'canary', 7]\n").unwrap();
        let trust = Trust::load(root.path()).unwrap();
        assert_eq!(trust.folders(), [Path::new("/w")]);
        let reports: Vec<_> = trust.reports().iter().map(ToString::to_string).collect();
        assert!(reports.len() == 3 && reports.iter().all(|report| !report.contains("canary")), "{reports:?}");
        assert!(reports[0].contains("trust.toml` line 3:"), "{reports:?}");
        fs::write(root.path().join("trust.toml"), "\nfolders = [").unwrap();
        let message = Trust::load(root.path()).unwrap_err().to_string();
        assert!(message.contains("trust.toml` line 2: this is not TOML"), "{message}");
    }
}
