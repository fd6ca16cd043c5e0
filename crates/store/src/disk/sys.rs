//! A file that is mapped into memory and written by copying: the only `unsafe` of the project.
//!
//! A copy costs 0.02 to 0.4 µs for a record of 300 bytes where `pwrite` costs 1.2 to 1.7 µs, and it survives `kill -9`
//! just the same: the page belongs to the kernel.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, ErrorKind};

use memmap2::MmapRaw;

/// The whole of a file. Its blocks must be allocated: writing to a page that the disk has no room for ends the process.
pub(super) struct Mapping {
    map: MmapRaw,
}

impl Mapping {
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self { map: MmapRaw::map_raw(file)? })
    }

    pub fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let end = offset.checked_add(bytes.len()).filter(|end| *end <= self.map.len());
        if end.is_none() {
            return Err(ErrorKind::WriteZero.into());
        }
        // SAFETY: the range lies in the mapping, which lives as long as `self`. No reference into the mapping is ever
        // given out, so `bytes` lies elsewhere, and `&mut self` keeps every other copy away. Others read the file by
        // system calls only.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.as_mut_ptr().add(offset), bytes.len());
        }
        Ok(())
    }
}
