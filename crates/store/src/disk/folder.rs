//! The state folder: private to its owner, and used by one process at a time.

use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gembridge_core::model::SessionId;
use gembridge_core::store::StoreError;
use rusqlite::Connection;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::database;
use super::files::{failure, private_file};

/// Held for as long as the store is open; the system gives it back however the process ends.
pub(super) struct FolderLock {
    file: File,
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing alone would not do while a process that is just being started still has a copy of the descriptor.
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "the lock of the state folder could not be given back");
        }
    }
}

/// A process that was killed while it started another leaves the lock with that one, until it runs its own program.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Takes the lock, again and again for as long as `wait` says so. Whether it was taken.
fn take(file: &File, mut wait: impl FnMut() -> bool) -> std::io::Result<bool> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if wait() => {}
            Err(TryLockError::WouldBlock) => return Ok(false),
        }
    }
}

/// Whether the process that noted itself in the lock file has ended.
fn is_gone(lock: &Path) -> bool {
    let owner = fs::read_to_string(lock).ok().and_then(|owner| owner.trim().parse().ok()).and_then(Pid::from_raw);
    owner.is_some_and(|owner| test_kill_process(owner) == Err(Errno::SRCH))
}

pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub fn database(&self) -> PathBuf {
        self.root.join("gembridge.db")
    }

    pub fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    /// Where earlier versions had their logs.
    pub fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    /// Where earlier versions had logs on their way out.
    fn deleted(&self) -> PathBuf {
        self.root.join("deleted")
    }

    /// Makes the folder where it is missing, makes sure that only its owner can look inside, and takes the lock.
    pub fn lock(&self) -> Result<FolderLock, StoreError> {
        let failed = |error: std::io::Error| failure(&error);
        let path = self.root.join("lock");
        private_dir(&self.root).map_err(failed)?;
        let mode = fs::metadata(&self.root).map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            let is_ours = path.exists() || is_empty(&self.root).map_err(failed)?;
            if !is_ours {
                return Err(StoreError::Refused(format!(
                    "state folder `{0}` is open to other users and holds other files; run `chmod 700 {0}` or choose another folder",
                    self.root.display()
                )));
            }
            fs::set_permissions(&self.root, Permissions::from_mode(0o700)).map_err(failed)?;
        }
        let file = private_file().create(true).truncate(false).open(&path).map_err(failed)?;
        let mut waited = Duration::ZERO;
        let taken = take(&file, || {
            let may_wait = waited < LONGEST_WAIT && is_gone(&path);
            if may_wait {
                std::thread::sleep(LOOK_EVERY);
                waited += LOOK_EVERY;
            }
            may_wait
        });
        if !taken.map_err(failed)? {
            return Err(self.in_use(&path));
        }
        // Only for the message of whoever comes second; the lock itself does not need it.
        let noted = file.set_len(0).and_then(|()| write!(&file, "{}", std::process::id()));
        if let Err(error) = noted {
            tracing::debug!(%error, "the owner could not be noted in the lock file");
        }
        private_dir(&self.journal()).map_err(failed)?;
        Ok(FolderLock { file })
    }

    fn in_use(&self, lock: &Path) -> StoreError {
        let owner = fs::read_to_string(lock).unwrap_or_default();
        let owner = match owner.trim() {
            "" => String::new(),
            pid => format!(" (process {pid})"),
        };
        StoreError::InUse(format!(
            "state folder `{}` is in use by another gembridge{owner}; stop it or choose another folder",
            self.root.display()
        ))
    }

    /// Finishes deletions of an earlier version that were cut short, and takes back those that were never acknowledged.
    pub fn settle_deletions(&self, connection: &Connection) -> Result<(), StoreError> {
        let entries = match fs::read_dir(self.deleted()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(|error| failure(&error))?,
        };
        for entry in entries {
            let path = entry.map_err(|error| failure(&error))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let Some(id) = name.and_then(|name| name.parse::<SessionId>().ok()) else { continue };
            let settled = if database::exists(connection, id)? {
                fs::rename(&path, self.sessions().join(id.to_string()))
            } else {
                fs::remove_dir_all(&path)
            };
            if let Err(error) = settled {
                tracing::warn!(folder = %path.display(), %error, "a deleted session could not be cleared away");
            }
        }
        // Empty by now, unless somebody else put something there.
        drop(fs::remove_dir(self.deleted()));
        Ok(())
    }
}

fn private_dir(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn is_empty(path: &Path) -> std::io::Result<bool> {
    Ok(fs::read_dir(path)?.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_a_killed_process_left_with_its_child_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let (left, file) = (File::create(&path).unwrap(), File::create(&path).unwrap());
        left.lock().unwrap();
        let mut waits = 0;
        let taken = take(&file, || {
            waits += 1;
            if waits == 3 {
                left.unlock().unwrap();
            }
            true
        });
        assert!(taken.unwrap());
        assert_eq!(waits, 3);
        left.try_lock().unwrap_err();
    }

    #[test]
    fn the_owner_of_a_lock_is_gone_once_it_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        fs::write(&path, std::process::id().to_string()).unwrap();
        assert!(!is_gone(&path));
        // Above what Linux gives out.
        fs::write(&path, (1 << 23).to_string()).unwrap();
        assert!(is_gone(&path));
        fs::write(&path, "").unwrap();
        assert!(!is_gone(&path), "it has the lock, and has not said yet who it is");
    }
}
