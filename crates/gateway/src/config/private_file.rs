//! Small files that hold what the operator decided: private, replaced as a whole, and changed by one writer at a time,
//! in this process and beyond it.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::error::ConfigError;
use super::folders::{ensure_private, is_trusted_owner};

/// No file of this kind grows so large.
const MOST_BYTES: u64 = 4 << 20;

/// How long a change waits for other writers.
const PATIENCE: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(5);

/// The one writer of this process, whichever file it changes.
static WRITER: Mutex<()> = Mutex::new(());

/// What stands in a file, and the state of the file that it was read in.
#[derive(Clone, Debug)]
pub struct Contents {
    pub bytes: Vec<u8>,
    pub stamp: Stamp,
}

/// Reads a file; one that is not there is an empty one. Never waits: what is not a regular file is refused.
pub fn read(path: &Path) -> Result<Contents, ConfigError> {
    let Some((file, found)) = open_to_read(path)? else {
        return Ok(Contents { bytes: Vec::new(), stamp: Stamp::Missing });
    };
    if !is_trusted_owner(found.uid()) {
        return Err(ConfigError::ForeignOwner { path: path.to_owned(), owner: found.uid() });
    }
    // The state before it is read: a change meanwhile is then seen as one, and read again.
    let stamp = Stamp::from(&found);
    Ok(Contents { bytes: bounded(path, file)?, stamp })
}

/// The text of a file that the operator wrote, whoever owns it; nothing where there is none. Never waits either.
pub fn read_text(path: &Path) -> Result<Option<String>, ConfigError> {
    let Some((file, _)) = open_to_read(path)? else { return Ok(None) };
    let text = String::from_utf8(bounded(path, file)?).map_err(|error| {
        let error = io::Error::new(io::ErrorKind::InvalidData, error.utf8_error());
        ConfigError::Unreadable { path: path.to_owned(), error }
    });
    text.map(Some)
}

fn open_to_read(path: &Path) -> Result<Option<(File, Metadata)>, ConfigError> {
    match open_regular(path, File::options().read(true)) {
        Err(ConfigError::Unreadable { error, .. }) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

fn bounded(path: &Path, file: File) -> Result<Vec<u8>, ConfigError> {
    let unreadable = |error| ConfigError::Unreadable { path: path.to_owned(), error };
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(unreadable(io::Error::from(io::ErrorKind::FileTooLarge)));
    }
    Ok(bytes)
}

/// A pipe or a device must not hold up whoever opens it, and has nothing to say here.
fn open_regular(path: &Path, options: &mut OpenOptions) -> Result<(File, Metadata), ConfigError> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let opened = options.custom_flags(flags).open(path).and_then(|file| Ok((file.metadata()?, file)));
    match opened {
        Ok((found, file)) if found.is_file() => Ok((file, found)),
        Ok(_) => Err(ConfigError::NotRegular { path: path.to_owned() }),
        // The words of the system for a socket.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            Err(ConfigError::NotRegular { path: path.to_owned() })
        }
        Err(error) => Err(ConfigError::Unreadable { path: path.to_owned(), error }),
    }
}

/// The only one who may change a file, until it is dropped.
pub struct Writer {
    path: PathBuf,
    _process: MutexGuard<'static, ()>,
    /// Locked for other processes.
    _lock: File,
}

/// Waits until nobody else changes the file. The lock is a file beside it, since the file itself is replaced.
pub fn lock(path: &Path) -> Result<Writer, ConfigError> {
    let deadline = Instant::now() + PATIENCE;
    if let Some(folder) = path.parent() {
        ensure_private(folder)?;
    }
    let process = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
    let lock_path = beside(path, ".lock");
    let mut options = File::options();
    let (lock, _) = open_regular(&lock_path, options.read(true).write(true).create(true).truncate(false).mode(0o600))?;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(Writer { path: path.to_owned(), _process: process, _lock: lock }),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(RETRY),
            Err(TryLockError::WouldBlock) => return Err(ConfigError::Locked { path: lock_path }),
            Err(TryLockError::Error(error)) => return Err(ConfigError::Unwritable { path: lock_path, error }),
        }
    }
}

/// Replaces a file whatever stands in it.
pub fn write(path: &Path, text: &str) -> Result<(), ConfigError> {
    lock(path)?.replace(text)
}

impl Writer {
    pub fn read(&self) -> Result<Contents, ConfigError> {
        read(&self.path)
    }

    /// Written beside and renamed: a crash leaves the old file or the new one.
    pub fn replace(&self, text: &str) -> Result<(), ConfigError> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        self.remove_unfinished();
        let number = || LAST.fetch_add(1, Ordering::Relaxed);
        let (new, file) = self.create(|| format!(".{}-{}{UNFINISHED}", std::process::id(), number()))?;
        let replaced = write_synced(file, text.as_bytes()).and_then(|()| fs::rename(&new, &self.path));
        if let Err(error) = replaced {
            drop(fs::remove_file(&new));
            return Err(self.unwritable(error));
        }
        self.sync_folder().map_err(|error| self.unwritable(error))
    }

    /// Keeps what stands in the file under a name of its own, which is returned.
    pub fn keep_copy(&self, contents: &[u8]) -> Result<PathBuf, ConfigError> {
        let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let mut number = 0;
        let (copy, file) = self.create(|| {
            number += 1;
            format!(".damaged-{now}-{number}")
        })?;
        write_synced(file, contents).map_err(|error| self.unwritable(error))?;
        Ok(copy)
    }

    /// A file that was not there before, under the first name that is free.
    fn create(&self, mut suffix: impl FnMut() -> String) -> Result<(PathBuf, File), ConfigError> {
        loop {
            let path = beside(&self.path, &suffix());
            match File::options().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok((path, file)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.unwritable(error)),
            }
        }
    }

    /// What a writer left that was killed: nobody else writes now.
    fn remove_unfinished(&self) {
        let (Some(folder), Some(name)) = (self.path.parent(), self.path.file_name()) else { return };
        let is_ours = |found: &OsString| {
            let found = found.as_encoded_bytes();
            found.starts_with(name.as_encoded_bytes()) && found.ends_with(UNFINISHED.as_bytes())
        };
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| is_ours(&entry.file_name())) {
            if let Err(error) = fs::remove_file(entry.path()) {
                tracing::debug!(%error, "an unfinished file stays");
            }
        }
    }

    /// The new name is on disk only once its folder is.
    fn sync_folder(&self) -> io::Result<()> {
        match self.path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }

    fn unwritable(&self, error: io::Error) -> ConfigError {
        ConfigError::Unwritable { path: self.path.clone(), error }
    }
}

/// How the name of a file ends that is not complete yet.
const UNFINISHED: &str = ".new";

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn write_synced(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

/// What tells one state of a file from the next. Every write of ours makes a new file; the rest is for people with an
/// editor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    Missing,
    There { inode: u64, size: u64, modified: (i64, i64), changed: (i64, i64) },
}

impl Stamp {
    pub fn of(path: &Path) -> Self {
        fs::metadata(path).map_or(Self::Missing, |found| Self::from(&found))
    }
}

impl From<&Metadata> for Stamp {
    fn from(found: &Metadata) -> Self {
        Self::There {
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn s1_a_file_is_private_and_replaced_as_a_whole() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("gembridge/keys.toml");
        write(&path, "a = 1\n").unwrap();
        let first = Stamp::of(&path);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        let open = File::open(&path).unwrap();
        write(&path, "a = 2\n").unwrap();
        assert_eq!(io::read_to_string(open).unwrap(), "a = 1\n", "whoever reads it sees one state");
        assert_ne!(Stamp::of(&path), first);
        assert_eq!(read(&path).unwrap().stamp, Stamp::of(&path));
        fs::remove_file(&path).unwrap();
        assert_eq!(Stamp::of(&path), Stamp::Missing);
    }

    #[test]
    fn f5_what_a_killed_writer_left_is_removed_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("keys.toml");
        for name in ["keys.toml.1-1.new", "keys.toml.damaged-1", "trust.toml.1-1.new"] {
            fs::write(root.path().join(name), "").unwrap();
        }
        write(&path, "").unwrap();
        let mut left: Vec<_> = fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["keys.toml", "keys.toml.damaged-1", "keys.toml.lock", "trust.toml.1-1.new"]);
    }

    #[test]
    fn f5_a_lock_that_another_process_holds_is_waited_for_and_then_named() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("keys.toml");
        write(&path, "").unwrap();
        // Another descriptor is as good as another process.
        let other = File::open(root.path().join("keys.toml.lock")).unwrap();
        other.lock().unwrap();
        let error = lock(&path).err().expect("it is held").to_string();
        assert!(error.contains("keys.toml.lock") && error.contains("another process"), "{error}");
        other.unlock().unwrap();
        write(&path, "").unwrap();
    }

    #[test]
    fn f5_a_temporary_file_never_follows_a_link_that_lies_in_its_way() {
        let root = tempfile::tempdir().unwrap();
        let (path, target) = (root.path().join("keys.toml"), root.path().join("target"));
        fs::write(&target, "untouched").unwrap();
        let writer = lock(&path).unwrap();
        let mut names = ["a", "b"].into_iter();
        std::os::unix::fs::symlink(&target, root.path().join("keys.tomla")).unwrap();
        let (made, _) = writer.create(|| names.next().unwrap().to_owned()).unwrap();
        assert_eq!(made, root.path().join("keys.tomlb"));
        assert_eq!(fs::read_to_string(target).unwrap(), "untouched");
    }

    #[test]
    fn f18_what_is_not_a_regular_file_is_refused_at_once() {
        let root = tempfile::tempdir().unwrap();
        let (fifo, socket) = (root.path().join("fifo"), root.path().join("socket"));
        mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [fifo.as_path(), &socket, root.path(), Path::new("/dev/zero")] {
            let error = read(path).unwrap_err().to_string();
            assert!(error.contains("is not a regular file"), "{}: {error}", path.display());
        }
        mknodat(CWD, root.path().join("keys.toml.lock"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(lock(&root.path().join("keys.toml")).is_err());
    }
}
