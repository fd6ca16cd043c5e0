//! The few questions that detection asks the disk, so that a test can answer them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Called for many paths, most of which do not exist. Contents are never asked for.
pub trait Probe {
    /// A regular file, links followed, that somebody may execute.
    fn is_executable(&self, path: &Path) -> bool;
    fn exists(&self, path: &Path) -> bool;
    /// Names in a folder, in any order; none if it cannot be read.
    fn entries(&self, folder: &Path) -> Vec<String>;
}

/// The disk as it is.
#[derive(Debug, Clone, Copy)]
pub struct Disk;

impl Probe for Disk {
    fn is_executable(&self, path: &Path) -> bool {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn entries(&self, folder: &Path) -> Vec<String> {
        let Ok(entries) = folder.read_dir() else { return Vec::new() };
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
    }
}
