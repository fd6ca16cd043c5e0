//! A log file that is renamed to `.old` when it has grown to its size, and comes back by itself after a failure.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Where lines of the log go.
///
/// Called by the log's thread alone, with whole lines. A failed append has written nothing that counts; the next one
/// starts afresh.
pub trait Sink: Send {
    fn append(&mut self, lines: &[u8]) -> io::Result<()>;
    fn name(&self) -> String;
}

/// Ours alone, whatever was there before.
const PRIVATE: u32 = 0o600;

pub struct RotatingFile {
    path: PathBuf,
    rotate_at: u64,
    state: State,
}

enum State {
    Closed,
    Open { file: File, size: Size },
}

/// Only a regular file has a size to watch; a device or a pipe is written as it is.
enum Size {
    Counted(u64),
    Unlimited,
}

impl RotatingFile {
    /// Opens nothing yet: the first line does.
    pub fn new(path: PathBuf, rotate_at: u64) -> Self {
        Self { path, rotate_at, state: State::Closed }
    }

    fn old_path(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".old");
        name.into()
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if let State::Open { size: Size::Counted(size), .. } = &self.state
            && *size > 0
            && size.saturating_add(length) > self.rotate_at
        {
            self.state = State::Closed;
            fs::rename(&self.path, self.old_path())?;
        }
        if matches!(self.state, State::Closed) {
            self.state = self.open()?;
        }
        let State::Open { file, size } = &mut self.state else { return Err(io::ErrorKind::NotFound.into()) };
        file.write_all(line)?;
        if let Size::Counted(size) = size {
            *size += length;
        }
        Ok(())
    }

    fn open(&self) -> io::Result<State> {
        let is_full = |found: fs::Metadata| found.is_file() && found.len() >= self.rotate_at;
        if fs::metadata(&self.path).is_ok_and(is_full) {
            fs::rename(&self.path, self.old_path())?;
        }
        let file = open_private(&self.path)?;
        let found = file.metadata()?;
        let size = if found.is_file() { Size::Counted(found.len()) } else { Size::Unlimited };
        if found.is_file() && found.permissions().mode() & 0o777 != PRIVATE {
            file.set_permissions(fs::Permissions::from_mode(PRIVATE))?;
        }
        Ok(State::Open { file, size })
    }
}

/// Without waiting: a pipe that nobody reads is an error, not a hang.
fn open_private(path: &Path) -> io::Result<File> {
    let no_waiting = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().append(true).create(true).mode(PRIVATE).custom_flags(no_waiting).open(path)
}

impl Sink for RotatingFile {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let written = self.write(line);
        if written.is_err() {
            // The file may be gone, its disk full, its folder replaced: the next line opens it again.
            self.state = State::Closed;
        }
        written
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn a_file_that_is_too_large_at_the_start_is_renamed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "0123456789").unwrap();
        let mut file = RotatingFile::new(path.clone(), 10);
        file.append(b"new\n").unwrap();
        assert_eq!(content(&folder.path().join("log.old")), "0123456789");
        assert_eq!(content(&path), "new\n");
    }

    #[test]
    fn a_file_that_grows_too_large_while_running_is_renamed_and_the_last_old_one_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut file = RotatingFile::new(path.clone(), 10);
        for line in ["one..\n", "two\n", "three\n", "four\n", "a line that is longer than the limit\n", "five\n"] {
            file.append(line.as_bytes()).unwrap();
        }
        assert_eq!(content(&folder.path().join("log.old")), "a line that is longer than the limit\n");
        assert_eq!(content(&path), "five\n");
    }

    #[test]
    fn s16_the_file_is_private_even_if_it_was_open_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        RotatingFile::new(path.clone(), 1000).append(b"x\n").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_path_that_cannot_be_opened_fails_each_time_and_works_once_it_can() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let mut file = RotatingFile::new(missing.join("log"), 1000);
        assert!(file.append(b"lost\n").is_err());
        assert!(file.append(b"lost\n").is_err());
        fs::create_dir(&missing).unwrap();
        file.append(b"kept\n").unwrap();
        assert_eq!(content(&missing.join("log")), "kept\n");
    }

    #[test]
    fn a_pipe_without_a_reader_is_an_error_and_not_a_hang() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        assert!(RotatingFile::new(path, 1000).append(b"x\n").is_err());
    }
}
