//! Files that an agent may read and write: resolved by descriptor, one component after the other, never by string prefix.

use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt as _, Permissions, PermissionsExt as _};
use rustix::fs::OFlags;

use super::paths;

/// A folder, and the files below it. All of its calls block for as long as the disk takes.
#[derive(Debug)]
pub struct Jail {
    folder: Dir,
    /// The root as it was given and as the disk names it: agents write either.
    roots: Vec<PathBuf>,
    limits: JailLimits,
}

#[derive(Debug, Clone, Copy)]
pub struct JailLimits {
    /// The largest file that is read or written.
    pub file_bytes: u64,
    /// What new files and folders leave to others, as the owner of the workspace would have it.
    pub umask: u32,
}

impl Default for JailLimits {
    fn default() -> Self {
        Self { file_bytes: 10 * 1024 * 1024, umask: 0o077 }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum JailError {
    #[error("`{0}` is not inside the workspace; use a path below it, without `..`")]
    Outside(String),
    #[error("`{0}` is or passes a symbolic link; name the real file")]
    Symlink(String),
    #[error("`{0}` is not a regular file")]
    NotAFile(String),
    #[error("`{0}` does not exist")]
    Missing(String),
    #[error("`{0}` may not be opened; check its permissions")]
    Denied(String),
    #[error("`{path}` has more than {limit} bytes, the largest file that is handled here")]
    TooLarge { path: String, limit: u64 },
    #[error("`{0}` is not UTF-8 text")]
    NotText(String),
    #[error("`{path}`: {source}")]
    Io { path: String, source: io::Error },
}

impl Jail {
    /// Opens the root once; whatever its path names later, the jail stays with this folder.
    pub fn open(root: &Path, limits: JailLimits) -> Result<Self, JailError> {
        let shown = shown(&root.to_string_lossy());
        if !root.is_absolute() || root.parent().is_none() {
            return Err(JailError::Outside(shown));
        }
        let wrap = |source| JailError::Io { path: shown.clone(), source };
        let real = root.canonicalize().map_err(wrap)?;
        if real.parent().is_none() {
            return Err(JailError::Outside(shown));
        }
        let folder = Dir::open_ambient_dir(&real, ambient_authority()).map_err(wrap)?;
        Ok(Self { folder, roots: vec![root.to_owned(), real], limits })
    }

    /// The text of a file: all of it, or `limit` lines from line `line` on, counted from 1.
    pub fn read_text(&self, path: &str, line: Option<u32>, limit: Option<u32>) -> Result<String, JailError> {
        let relative = self.relative(path)?;
        let (folders, name) = split(&relative).ok_or_else(|| JailError::NotAFile(shown(path)))?;
        let parent = self.descend(folders, path, Missing::Refuse)?;
        let file = open_regular(&parent, name, OpenOptions::new().read(true), path)?;
        let text = self.read_all(file, path)?;
        Ok(slice_lines(text, line, limit))
    }

    /// Replaces or creates a file with all its folders. A reader sees the old or the new content, never a part.
    pub fn write_text(&self, path: &str, content: &str) -> Result<(), JailError> {
        if content.len() as u64 > self.limits.file_bytes {
            return Err(JailError::TooLarge { path: shown(path), limit: self.limits.file_bytes });
        }
        let relative = self.relative(path)?;
        let (folders, name) = split(&relative).ok_or_else(|| JailError::NotAFile(shown(path)))?;
        let parent = self.descend(folders, path, Missing::Create(0o777 & !self.limits.umask))?;
        let existing = existing_file(&parent, name, path)?;
        let permissions = existing.clone().unwrap_or_else(|| self.new_file());
        replace(&parent, name, content, Replaced { existing, permissions }, path)
    }

    /// Whether a write to this path has to be asked about even where writes are allowed. True for what is refused anyway.
    pub fn needs_consent(&self, path: &str) -> bool {
        paths::inside(&self.roots, path).is_none_or(|relative| paths::is_guarded(&relative))
    }

    /// Whether the path is a file or a folder of the jail, reached without a link.
    pub fn holds(&self, path: &str) -> bool {
        let Ok(relative) = self.relative(path) else { return false };
        if self.descend(&relative, path, Missing::Refuse).is_ok() {
            return true;
        }
        let Some((folders, name)) = split(&relative) else { return false };
        let parent = self.descend(folders, path, Missing::Refuse);
        parent.is_ok_and(|parent| open_regular(&parent, name, OpenOptions::new().read(true), path).is_ok())
    }

    /// The absolute path of a folder inside, for a command that is to run there; the root itself for none.
    pub fn folder(&self, path: Option<&str>) -> Result<PathBuf, JailError> {
        let path = path.unwrap_or(".");
        let relative = self.relative(path)?;
        self.descend(&relative, path, Missing::Refuse)?;
        // The last root is the one that the disk names.
        Ok(self.roots[self.roots.len() - 1].join(relative))
    }

    /// What new files and folders leave to others.
    pub fn umask(&self) -> u32 {
        self.limits.umask
    }

    fn new_file(&self) -> Permissions {
        Permissions::from_mode(0o666 & !self.limits.umask)
    }

    fn relative(&self, path: &str) -> Result<PathBuf, JailError> {
        paths::inside(&self.roots, path).ok_or_else(|| JailError::Outside(shown(path)))
    }

    /// Opens the folder at `relative`, each component by the descriptor of the one before, no link followed.
    fn descend(&self, relative: &Path, path: &str, missing: Missing) -> Result<Dir, JailError> {
        let mut folder = self.folder.try_clone().map_err(|error| explain(error, path))?;
        for name in relative {
            folder = open_folder(&folder, name, path, missing)?;
        }
        Ok(folder)
    }

    fn read_all(&self, file: File, path: &str) -> Result<String, JailError> {
        let mut bytes = Vec::new();
        // The size may change while we read, so the bound is on what is read.
        let limit = self.limits.file_bytes;
        file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| explain(error, path))?;
        if bytes.len() as u64 > limit {
            return Err(JailError::TooLarge { path: shown(path), limit });
        }
        String::from_utf8(bytes).map_err(|_| JailError::NotText(shown(path)))
    }
}

/// What to do about a folder that is not there.
#[derive(Clone, Copy)]
enum Missing {
    Refuse,
    /// Make it, with these permissions.
    Create(u32),
}

fn split(relative: &Path) -> Option<(&Path, &OsStr)> {
    Some((relative.parent()?, relative.file_name()?))
}

fn open_folder(parent: &Dir, name: &OsStr, path: &str, missing: Missing) -> Result<Dir, JailError> {
    let open = || {
        let flags = OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::NONBLOCK;
        let file = parent.open_with(name, OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()))?;
        Ok(Dir::from_std_file(file.into_std()))
    };
    match (open(), missing) {
        (Err(error), Missing::Create(mode)) if io::Error::kind(&error) == io::ErrorKind::NotFound => {
            let is_ours = match parent.create_dir(name) {
                Ok(()) => true,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
                Err(error) => return Err(explain(error, path)),
            };
            let folder: Dir = open().map_err(|error| refuse(parent, name, error, path))?;
            if is_ours {
                folder.set_permissions(".", Permissions::from_mode(mode)).map_err(|error| explain(error, path))?;
            }
            Ok(folder)
        }
        (opened, _) => opened.map_err(|error| refuse(parent, name, error, path)),
    }
}

/// Opens a regular file and nothing else: a pipe does not hang us, a link is not followed, a device is not touched.
fn open_regular(parent: &Dir, name: &OsStr, options: &mut OpenOptions, path: &str) -> Result<File, JailError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let options = options.custom_flags(flags.bits().cast_signed());
    let file = parent.open_with(name, options).map_err(|error| refuse(parent, name, error, path))?;
    if !file.metadata().map_err(|error| explain(error, path))?.is_file() {
        return Err(JailError::NotAFile(shown(path)));
    }
    Ok(file)
}

/// What is at the place of a write: nothing, or a regular file whose permissions are kept.
fn existing_file(parent: &Dir, name: &OsStr, path: &str) -> Result<Option<Permissions>, JailError> {
    let metadata = match parent.symlink_metadata(name) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(explain(error, path)),
    };
    if metadata.is_symlink() {
        return Err(JailError::Symlink(shown(path)));
    }
    if !metadata.is_file() {
        return Err(JailError::NotAFile(shown(path)));
    }
    if metadata.permissions().readonly() {
        return Err(JailError::Denied(shown(path)));
    }
    Ok(Some(metadata.permissions()))
}

/// What a write replaces, and the permissions that it leaves.
struct Replaced {
    existing: Option<Permissions>,
    permissions: Permissions,
}

/// Writes beside the file and renames over it. A rename replaces a link that appeared meanwhile and does not follow it.
fn replace(parent: &Dir, name: &OsStr, content: &str, replaced: Replaced, path: &str) -> Result<(), JailError> {
    let temporary = temporary_name();
    let mut file = match parent.open_with(&temporary, OpenOptions::new().write(true).create_new(true).mode(0o600)) {
        Ok(file) => file,
        // A folder that may not be changed can hold a file that may.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && replaced.existing.is_some() => {
            return overwrite(parent, name, content, path);
        }
        Err(error) => return Err(explain(error, path)),
    };
    let written = file
        .write_all(content.as_bytes())
        .and_then(|()| file.set_permissions(replaced.permissions))
        .and_then(|()| parent.rename(&temporary, parent, name));
    written.map_err(|error| {
        if let Err(left) = parent.remove_file(&temporary) {
            tracing::warn!(error = %left, file = %temporary, "a half-written file could not be removed");
        }
        refuse(parent, name, error, path)
    })
}

fn overwrite(parent: &Dir, name: &OsStr, content: &str, path: &str) -> Result<(), JailError> {
    let mut file = open_regular(parent, name, OpenOptions::new().write(true), path)?;
    let written = file.set_len(0).and_then(|()| file.write_all(content.as_bytes()));
    written.map_err(|error| explain(error, path))
}

fn temporary_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!(".gembridge-{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Why an open failed, in our words: the kernel reports a link as a loop, or as "not a folder".
fn refuse(parent: &Dir, name: &OsStr, error: io::Error, path: &str) -> JailError {
    match parent.symlink_metadata(name) {
        Ok(metadata) if metadata.is_symlink() => JailError::Symlink(shown(path)),
        Ok(metadata) if !metadata.is_file() && error.kind() != io::ErrorKind::PermissionDenied => {
            JailError::NotAFile(shown(path))
        }
        _ => explain(error, path),
    }
}

fn explain(error: io::Error, path: &str) -> JailError {
    match error.kind() {
        io::ErrorKind::NotFound => JailError::Missing(shown(path)),
        io::ErrorKind::PermissionDenied => JailError::Denied(shown(path)),
        io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory => JailError::NotAFile(shown(path)),
        _ => JailError::Io { path: shown(path), source: error },
    }
}

/// A path of the agent's, fit for a message: control characters escaped, not too long.
fn shown(path: &str) -> String {
    path.chars().take(300).flat_map(char::escape_debug).collect()
}

fn slice_lines(text: String, line: Option<u32>, limit: Option<u32>) -> String {
    if line.is_none() && limit.is_none() {
        return text;
    }
    let skipped = line.unwrap_or(1).saturating_sub(1) as usize;
    let taken = limit.map_or(usize::MAX, |limit| limit as usize);
    text.split_inclusive('\n').skip(skipped).take(taken).collect()
}

#[cfg(test)]
mod tests;
