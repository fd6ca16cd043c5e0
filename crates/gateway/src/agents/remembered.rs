//! Versions that programs told, so that a start need not ask again. A program that changed is asked anew.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gembridge_drivers::profile::Version;
use serde::{Deserialize, Serialize};

use crate::config::folders::ensure_private;

/// What can be lost is not worth an error: every failure here means that the program is asked.
pub struct Versions {
    file: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Told {
    /// What the file was when it told.
    modified: i64,
    size: u64,
    version: String,
}

impl Versions {
    pub fn of(cache: &Path) -> Self {
        Self { file: cache.join("versions.json") }
    }

    pub fn get(&self, program: &Path) -> Option<Version> {
        let (modified, size) = state(program)?;
        let told = self.read().remove(program)?;
        (told.modified == modified && told.size == size).then(|| told.version.parse().ok()).flatten()
    }

    pub fn put(&self, program: &Path, version: Version) {
        let Some((modified, size)) = state(program) else { return };
        let mut all = self.read();
        all.insert(program.to_owned(), Told { modified, size, version: version.to_string() });
        if let Err(error) = self.write(&all) {
            tracing::debug!(%error, "a version is not remembered");
        }
    }

    fn read(&self) -> BTreeMap<PathBuf, Told> {
        fs::read(&self.file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    fn write(&self, all: &BTreeMap<PathBuf, Told>) -> anyhow::Result<()> {
        if let Some(folder) = self.file.parent() {
            ensure_private(folder)?;
        }
        let beside = self.file.with_extension(format!("json.{}", std::process::id()));
        fs::write(&beside, serde_json::to_vec(all)?)?;
        Ok(fs::rename(&beside, &self.file)?)
    }
}

/// When the file was changed, to the nanosecond, and how large it is; links are followed.
fn state(program: &Path) -> Option<(i64, u64)> {
    let found = fs::metadata(program).ok()?;
    Some((found.mtime().wrapping_mul(1_000_000_000).wrapping_add(found.mtime_nsec()), found.size()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_remembered_until_the_program_changes() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("agent");
        fs::write(&program, "one").unwrap();
        let versions = Versions::of(&folder.path().join("cache"));
        assert_eq!(versions.get(&program), None);
        versions.put(&program, Version::new(1, 2, 3));
        assert_eq!(versions.get(&program), Some(Version::new(1, 2, 3)));
        fs::write(&program, "another").unwrap();
        assert_eq!(versions.get(&program), None);
    }

    #[test]
    fn a_broken_memory_is_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("versions.json"), "{").unwrap();
        let versions = Versions::of(folder.path());
        assert_eq!(versions.get(Path::new("/bin/sh")), None);
        versions.put(Path::new("/bin/sh"), Version::new(1, 0, 0));
        assert_eq!(versions.get(Path::new("/bin/sh")), Some(Version::new(1, 0, 0)));
    }
}
