//! Small files of ours that hold what the operator decided: private, replaced as a whole, and looked at for changes.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use serde::de::DeserializeOwned;

use super::error::ConfigError;
use super::folders::ensure_private;

/// Reads a TOML file; one that is not there is an empty one. `written_by` names the command that writes it. What the
/// file says is not repeated in the error, since it may be a secret.
pub fn read<T: DeserializeOwned>(path: &Path, written_by: &str) -> Result<T, ConfigError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(ConfigError::Unreadable { path: path.to_owned(), error }),
    };
    toml::from_str(&text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let line = 1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
        let problem = format!("{}; `{written_by}` writes this file", error.message());
        ConfigError::InFile { path: path.to_owned(), line, problem }
    })
}

/// Written beside and renamed: a crash leaves the old file or the new one.
pub fn write(path: &Path, text: &str) -> Result<(), ConfigError> {
    let unwritable = |error: io::Error| ConfigError::Unwritable { path: path.to_owned(), error };
    if let Some(folder) = path.parent() {
        ensure_private(folder)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside).map_err(unwritable)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(unwritable)?;
    fs::rename(&beside, path).map_err(unwritable)
}

/// What tells one state of a file from the next. Every write of ours makes a new file, so the inode alone would do;
/// the rest is for people with an editor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    Missing,
    There { inode: u64, size: u64, seconds: i64, nanoseconds: i64 },
}

impl Stamp {
    pub fn of(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(found) => Self::There {
                inode: found.ino(),
                size: found.size(),
                seconds: found.mtime(),
                nanoseconds: found.mtime_nsec(),
            },
            Err(_) => Self::Missing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_a_file_is_private_and_replaced_as_a_whole() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("gembridge/keys.toml");
        write(&path, "a = 1\n").unwrap();
        let first = Stamp::of(&path);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        let open = fs::File::open(&path).unwrap();
        write(&path, "a = 2\n").unwrap();
        assert_eq!(io::read_to_string(open).unwrap(), "a = 1\n", "whoever reads it sees one state");
        assert_ne!(Stamp::of(&path), first);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
        fs::remove_file(&path).unwrap();
        assert_eq!(Stamp::of(&path), Stamp::Missing);
    }
}
