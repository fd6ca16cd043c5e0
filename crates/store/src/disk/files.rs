//! The system calls that can fail for reasons of the disk, behind a trait whose test version fails on demand.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use gembridge_core::store::StoreError;
use rustix::io::Errno;

use super::segment::{self, Medium};

/// What the journal asks of the disk; each call can fail by itself.
pub(super) trait Files: Send + Sync {
    fn create(&self, path: &Path) -> io::Result<File>;
    fn allocate(&self, file: &File, len: u64) -> io::Result<()>;
    /// Writes all of `bytes`, or fails with some of them written.
    fn write(&self, file: &File, medium: &mut Medium, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn sync(&self, file: &File) -> io::Result<()>;
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

pub(super) struct RealFiles;

/// Length and checksum of a frame.
const COMMITS: usize = 8;

impl Files for RealFiles {
    fn create(&self, path: &Path) -> io::Result<File> {
        private_file().create(true).truncate(true).open(path)
    }

    fn allocate(&self, file: &File, len: u64) -> io::Result<()> {
        segment::allocate(file, len)
    }

    fn write(&self, file: &File, medium: &mut Medium, bytes: &[u8], offset: u64) -> io::Result<()> {
        match medium {
            Medium::Mapped(mapping) => mapping.write(bytes, offset),
            Medium::Written => {
                // What makes it a frame comes last, so that one that was refused half way through is none.
                let (head, rest) = bytes.split_at(bytes.len().min(COMMITS));
                file.write_all_at(rest, offset + head.len() as u64)?;
                file.write_all_at(head, offset)
            }
        }
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

/// For reading and writing, and for its owner only.
pub(super) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

/// Reads up to `len` bytes; fewer only at the end of the file.
pub(super) fn read_up_to(file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut filled = 0;
    while filled < len {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// What a failed system call means to whoever asked for it.
pub(super) fn failure(error: &io::Error) -> StoreError {
    if matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE)) {
        return StoreError::NoDescriptor;
    }
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => StoreError::Full,
        _ => StoreError::Io(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r11_a_lack_of_descriptors_passes_and_a_full_disk_does_not() {
        assert_eq!(failure(&Errno::MFILE.into()), StoreError::NoDescriptor);
        assert_eq!(failure(&Errno::NFILE.into()), StoreError::NoDescriptor);
        assert_eq!(failure(&Errno::NOSPC.into()), StoreError::Full);
        assert!(matches!(failure(&Errno::IO.into()), StoreError::Io(_)));
    }
}
