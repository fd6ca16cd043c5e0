//! A file of the journal: allocated ahead, filled with frames, read until the first that is not whole, used again.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use gembridge_core::store::StoreError;
use rustix::fs::{FallocateFlags, fallocate, fstatfs};
use rustix::io::Errno;

use super::files::{Files, failure, private_file, read_up_to};
use super::frame::{self, Frame, TERMINATOR};
use super::record::{u32_at, u64_at};
use super::sys::Mapping;

const MAGIC: &[u8; 8] = b"gbjrnl\r\n";
const VERSION: u32 = 1;
/// Magic, version, salt, number, checksum of those.
const CHECKED: usize = 24;
pub(super) const HEADER: u64 = CHECKED as u64 + 4;

/// Where a write to an allocated block of a mapped file cannot fail: ext2 to ext4, XFS, and files in memory. Others copy a
/// block before they change it, or ask another machine, and are written by system calls.
const MAPPABLE: [u64; 3] = [0xEF53, 0x5846_5342, 0x0102_1994];

/// A segment that holds frames, or will.
pub(super) struct Segment {
    pub file: File,
    pub path: PathBuf,
    pub capacity: u64,
    /// Counts up; which of two segments is older.
    pub number: u64,
    pub salt: u32,
    /// Where its last frame ends. Only grows, under the lock of the journal.
    pub end: AtomicU64,
    /// A sync failed: the kernel may have given up bytes of it.
    pub is_suspect: AtomicBool,
}

/// A file that can become a segment.
pub(super) struct Spare {
    pub file: File,
    pub path: PathBuf,
    pub capacity: u64,
}

/// How the frames get into the file.
pub(super) enum Medium {
    Mapped(Mapping),
    Written,
}

impl Spare {
    /// Makes a file with blocks for `capacity` bytes.
    pub fn allocate(path: PathBuf, capacity: u64, files: &dyn Files) -> io::Result<Self> {
        let file = files.create(&path)?;
        let allocated = files.allocate(&file, capacity);
        if let Err(error) = allocated.and_then(|()| files.sync_dir(path.parent().unwrap_or(&path))) {
            drop(file);
            // Half of it would take the space that is missing.
            drop(std::fs::remove_file(&path));
            return Err(error);
        }
        Ok(Self { file, path, capacity })
    }

    /// Writes the header of segment `number`; gives its salt and how to go on.
    pub fn prepare(&self, number: u64, may_map: bool, files: &dyn Files) -> io::Result<(u32, Medium)> {
        let mut salt = [0; 4];
        getrandom::fill(&mut salt).map_err(io::Error::other)?;
        let salt = u32::from_le_bytes(salt);
        let mut header = header(number, salt);
        header.extend_from_slice(&TERMINATOR);
        files.write(&self.file, &mut Medium::Written, &header, 0)?;
        let medium =
            if may_map && is_mappable(&self.file) { Medium::Mapped(Mapping::of(&self.file)?) } else { Medium::Written };
        Ok((salt, medium))
    }

    pub fn into_segment(self, number: u64, salt: u32) -> Segment {
        let Self { file, path, capacity } = self;
        Segment { file, path, capacity, number, salt, end: AtomicU64::new(HEADER), is_suspect: AtomicBool::new(false) }
    }
}

fn header(number: u64, salt: u32) -> Vec<u8> {
    let mut header = Vec::with_capacity(64);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&salt.to_le_bytes());
    header.extend_from_slice(&number.to_le_bytes());
    let checksum = crc32fast::hash(&header);
    header.extend_from_slice(&checksum.to_le_bytes());
    header
}

/// A file that was left behind: the segment it holds, or only the room.
pub(super) enum Left {
    Segment(Segment),
    Spare(Spare),
}

impl Left {
    pub fn open(path: PathBuf) -> Result<Self, StoreError> {
        let read = || -> io::Result<(File, u64, Vec<u8>)> {
            let file = private_file().open(&path)?;
            let capacity = file.metadata()?.len();
            let header = read_up_to(&file, 0, CHECKED + 4)?;
            Ok((file, capacity, header))
        };
        let (file, capacity, header) = read().map_err(|error| failure(&error))?;
        let is_whole = header.starts_with(MAGIC)
            && u32_at(&header, CHECKED) == Some(crc32fast::hash(header.get(..CHECKED).unwrap_or_default()));
        let (Some(version), Some(salt), Some(number)) = (u32_at(&header, 8), u32_at(&header, 12), u64_at(&header, 16))
        else {
            return Ok(Self::Spare(Spare { file, path, capacity }));
        };
        if !is_whole {
            return Ok(Self::Spare(Spare { file, path, capacity }));
        }
        if version > VERSION {
            return Err(StoreError::Refused(format!(
                "`{}` was written by a newer version of gembridge (format {version}, this one knows {VERSION}); \
                 use that version",
                path.display()
            )));
        }
        Ok(Self::Segment(Spare { file, path, capacity }.into_segment(number, salt)))
    }
}

impl Segment {
    pub fn into_spare(self) -> Spare {
        Spare { file: self.file, path: self.path, capacity: self.capacity }
    }

    /// The frames in `[offset, offset + len)`, until the first that is not whole, and where that begins.
    pub fn frames(&self, offset: u64, len: u64) -> io::Result<(Vec<Frame>, u64)> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let mut rest = Bytes::from(read_up_to(&self.file, offset, len)?);
        let whole = rest.len();
        let mut frames = Vec::new();
        while let Some((frame, length)) = frame::parse(&rest, self.salt) {
            frames.push(frame);
            rest = rest.slice(length..);
        }
        Ok((frames, offset + (whole - rest.len()) as u64))
    }

    /// All its frames.
    pub fn all_frames(&self) -> io::Result<Vec<Frame>> {
        Ok(self.frames(HEADER, self.capacity.saturating_sub(HEADER))?.0)
    }

    /// Makes all of it dirty again after a sync that failed: the kernel may have given them up, and will not
    /// say so twice. Fails when it has, and read something else back.
    pub fn write_again(&self, files: &dyn Files) -> Result<(), StoreError> {
        let end = self.end.load(Ordering::Acquire);
        let failed = |error: io::Error| failure(&error);
        let (_, readable) = self.frames(HEADER, end.saturating_sub(HEADER)).map_err(failed)?;
        if readable < end {
            return Err(StoreError::Damaged(format!("`{}` lost its end after a failed sync", self.path.display())));
        }
        // Not a byte more: behind the end the next frame may be on its way.
        let bytes = read_up_to(&self.file, 0, usize::try_from(end).unwrap_or(usize::MAX)).map_err(failed)?;
        files.write(&self.file, &mut Medium::Written, &bytes, 0).map_err(failed)
    }
}

fn is_mappable(file: &File) -> bool {
    // The type of this field differs between platforms.
    fstatfs(file).is_ok_and(|system| MAPPABLE.contains(&u64::try_from(system.f_type).unwrap_or(0)))
}

/// Gives the file blocks for `len` bytes, so that writing to them cannot run out of space.
pub(super) fn allocate(file: &File, len: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, len) {
        // Such a file system is written by system calls, which say when there is no room.
        Err(Errno::OPNOTSUPP) => file.set_len(len),
        allocated => Ok(allocated?),
    }
}

pub(super) fn path(folder: &Path, slot: u64) -> PathBuf {
    folder.join(format!("{slot:08}.journal"))
}

/// The number in a file name.
pub(super) fn slot_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_suffix(".journal")?.parse().ok()
}
