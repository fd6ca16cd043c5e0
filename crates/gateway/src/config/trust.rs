//! The folders in which the operator lets agents work: `trust.toml` of the config folder.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::ConfigError;
use super::private_file;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TrustFile {
    folders: Vec<PathBuf>,
}

/// The list, as it is on disk.
#[derive(Clone, Debug)]
pub struct Trust {
    path: PathBuf,
    folders: Vec<PathBuf>,
}

impl Trust {
    /// A file that is not there trusts nothing.
    pub fn load(config_folder: &Path) -> Result<Self, ConfigError> {
        let path = config_folder.join("trust.toml");
        let file: TrustFile = private_file::read(&path, "gembridge trust add")?;
        Ok(Self { path, folders: file.folders })
    }

    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Whether `folder`, with its links resolved, is a trusted folder or lies in one.
    pub fn covers(&self, folder: &Path) -> bool {
        folder.canonicalize().is_ok_and(|real| self.folders.iter().any(|trusted| real.starts_with(trusted)))
    }

    /// Adds a folder under its real name, which is returned.
    pub fn add(&mut self, folder: &Path) -> Result<PathBuf, ConfigError> {
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
        if !self.folders.contains(&real) {
            self.folders.push(real.clone());
            self.folders.sort();
            self.save()?;
        }
        Ok(real)
    }

    /// Takes a folder off the list, which may be gone from disk by now.
    pub fn remove(&mut self, folder: &Path) -> Result<PathBuf, ConfigError> {
        let named =
            folder.canonicalize().or_else(|_| std::path::absolute(folder)).unwrap_or_else(|_| folder.to_owned());
        let Some(place) = self.folders.iter().position(|trusted| *trusted == named) else {
            return Err(ConfigError::Invalid(format!(
                "`{}` is not on the trust list; `gembridge trust list` shows what is",
                named.display()
            )));
        };
        self.folders.remove(place);
        self.save()?;
        Ok(named)
    }

    fn save(&self) -> Result<(), ConfigError> {
        let text = toml::to_string(&TrustFile { folders: self.folders.clone() })
            .map_err(|error| ConfigError::Invalid(format!("cannot write the trust list: {error}")))?;
        private_file::write(&self.path, &text)
    }
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
        let mut trust = Trust::load(&config).unwrap();
        trust.add(&root.path().join("ws")).unwrap();

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
        let mut trust = Trust::load(root.path()).unwrap();
        let real = trust.add(&folder).unwrap();
        trust.add(&folder).unwrap();
        assert_eq!(trust.folders(), [real]);
        fs::remove_dir(&folder).unwrap();
        trust.remove(&folder).unwrap();
        assert!(Trust::load(root.path()).unwrap().folders().is_empty());
        assert!(trust.remove(&folder).unwrap_err().to_string().contains("not on the trust list"));
    }

    #[test]
    fn what_cannot_be_trusted_is_refused_with_the_way_out() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let mut trust = Trust::load(root.path()).unwrap();
        assert!(trust.add(&file).unwrap_err().to_string().contains("is not a folder"));
        assert!(trust.add(Path::new("/")).unwrap_err().to_string().contains("cannot be trusted as a whole"));
        assert!(trust.add(&root.path().join("missing")).unwrap_err().to_string().contains("cannot read"));
    }

    #[test]
    fn a_broken_list_is_an_error_with_its_line() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("trust.toml"), "\nfolder = ['/w']\n").unwrap();
        let message = Trust::load(root.path()).unwrap_err().to_string();
        assert!(message.contains("trust.toml` line 2: unknown field `folder`"), "{message}");
    }
}
