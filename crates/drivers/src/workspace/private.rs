//! Private folders: 0700, with a name of their own, gone with their owner. What a crash leaves behind is swept at the next start.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Beside each folder lies a file that its owner keeps locked: the lock goes with the process, however it ends.
const LOCK_SUFFIX: &str = ".lock";

/// A folder that only we may enter. Dropping it removes it with all it holds; if that fails, it is said and swept later.
#[derive(Debug)]
pub struct PrivateDir {
    path: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

impl PrivateDir {
    /// Makes a new, empty folder under `root`, which is made too if it is missing.
    pub fn create(root: &Path, purpose: &str) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(root)?;
        loop {
            let path = root.join(unique_name(purpose));
            let lock_path = lock_of(&path);
            let lock = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&lock_path) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            lock.lock()?;
            // A sweep that came between the two lines above took the file away; then its lock protects nothing.
            if !is_at(&lock, &lock_path)? {
                continue;
            }
            DirBuilder::new().mode(0o700).create(&path)?;
            return Ok(Self { path, lock_path, _lock: lock });
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A folder inside a [`PrivateDir`], whose lock protects it too. Dropping it removes it with all it holds.
#[derive(Debug)]
pub struct InnerDir {
    path: PathBuf,
}

impl InnerDir {
    pub fn create(within: &Path, purpose: &str) -> io::Result<Self> {
        let path = within.join(unique_name(purpose));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for InnerDir {
    fn drop(&mut self) {
        // Nearly always it is empty, and often the whole folder went before.
        let removed = match fs::remove_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => fs::remove_dir_all(&self.path),
            removed => removed,
        };
        if let Err(error) = removed
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(folder = %self.path.display(), %error, "a session's folder goes with that of its process");
        }
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path, &self.lock_path) {
            tracing::warn!(folder = %self.path.display(), %error, "a private folder could not be removed; it is swept at the next start");
        }
    }
}

/// Removes the folders under `root` whose owner is gone, and says how many. What cannot be removed is a warning.
pub fn sweep_private_dirs(root: &Path) -> io::Result<usize> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut swept = 0;
    for entry in entries {
        let lock_path = entry?.path();
        let Some(path) = folder_of(&lock_path) else { continue };
        let removed = match File::open(&lock_path) {
            Ok(lock) if lock.try_lock().is_ok() => remove(&path, &lock_path),
            // Held by its owner, or just gone.
            Ok(_) => continue,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => Err(error),
        };
        match removed {
            Ok(()) => swept += 1,
            Err(error) => {
                tracing::warn!(folder = %path.display(), %error, "a leftover folder could not be removed; remove it by hand");
            }
        }
    }
    Ok(swept)
}

/// The folder first: as long as it exists, so does the file that says whose it is.
fn remove(path: &Path, lock_path: &Path) -> io::Result<()> {
    match remove_folder(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match fs::remove_file(lock_path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            // Package caches like to make their folders read-only.
            make_writable(path)?;
            fs::remove_dir_all(path)
        }
        result => result,
    }
}

fn make_writable(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(path)? {
        make_writable(&entry?.path())?;
    }
    Ok(())
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok(there.dev() == ours.dev() && there.ino() == ours.ino()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn unique_name(purpose: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{purpose}-{}-{nanos:x}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn lock_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(LOCK_SUFFIX);
    name.into()
}

fn folder_of(lock_path: &Path) -> Option<PathBuf> {
    let name = lock_path.file_name()?.to_str()?.strip_suffix(LOCK_SUFFIX)?;
    Some(lock_path.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::{PrivateDir, lock_of, sweep_private_dirs};

    #[test]
    fn a_private_folder_is_for_its_owner_only_and_goes_with_it() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("state/private");
        let first = PrivateDir::create(&root, "chat").unwrap();
        let second = PrivateDir::create(&root, "chat").unwrap();
        assert_ne!(first.path(), second.path());
        assert_eq!(fs::metadata(first.path()).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(&root).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir_all(first.path().join("a/b")).unwrap();
        fs::write(first.path().join("a/b/c"), "x").unwrap();
        drop(first);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 2, "the second folder and its lock");
        drop(second);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
    }

    #[test]
    fn a_sweep_removes_what_the_dead_left_and_spares_the_living() {
        let temp = tempfile::tempdir().unwrap();
        let living = PrivateDir::create(temp.path(), "chat").unwrap();
        let dead = temp.path().join("chat-1-2-3");
        fs::create_dir_all(dead.join("deep")).unwrap();
        fs::set_permissions(dead.join("deep"), fs::Permissions::from_mode(0o500)).unwrap();
        fs::write(lock_of(&dead), "").unwrap();
        let unknown = temp.path().join("not-ours");
        fs::create_dir(&unknown).unwrap();
        assert_eq!(sweep_private_dirs(temp.path()).unwrap(), 1);
        assert!(!dead.exists() && !lock_of(&dead).exists());
        assert!(living.path().exists() && unknown.exists());
        assert_eq!(sweep_private_dirs(temp.path()).unwrap(), 0);
        assert_eq!(sweep_private_dirs(&temp.path().join("nowhere")).unwrap(), 0);
    }

    #[test]
    fn a_folder_that_someone_else_removed_is_no_failure() {
        let temp = tempfile::tempdir().unwrap();
        let folder = PrivateDir::create(temp.path(), "chat").unwrap();
        fs::remove_dir(folder.path()).unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    }
}
