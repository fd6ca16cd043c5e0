//! The files of a log of an earlier version: each begins with a header, is named by its first entry, and goes on in
//! the next.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use gembridge_core::store::StoreError;

use super::super::files::{failure, read_up_to};
use super::super::record;

const MAGIC: &[u8; 8] = b"gblog\r\n\x1a";
const VERSION: u32 = 1;
const HEADER: u64 = 16;

/// What a scan reads at once.
const CHUNK: usize = 64 << 10;

/// A border between two entries: where entry `seq` begins, or will.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct LogPosition {
    pub seq: u64,
    /// The number of the first entry of the segment.
    pub segment: u64,
    /// Zero where even the segment's header is to come.
    pub offset: u64,
}

impl LogPosition {
    pub const START: Self = Self { seq: 1, segment: 1, offset: 0 };
}

pub(in super::super) fn path(dir: &Path, first: u64) -> PathBuf {
    dir.join(format!("{first:020}.log"))
}

/// Walks over the records of a log, from one segment to the next, until the first that is not whole.
pub(in super::super) struct Scan<'a> {
    dir: &'a Path,
    place: LogPosition,
    open: Option<OpenSegment>,
}

struct OpenSegment {
    file: File,
    len: u64,
    chunk: Bytes,
    chunk_at: u64,
}

impl<'a> Scan<'a> {
    pub fn new(dir: &'a Path, place: LogPosition) -> Self {
        Self { dir, place, open: None }
    }

    /// The end of what was read: where the log ends, once [`Scan::next`] gave `None`.
    pub fn place(&self) -> LogPosition {
        self.place
    }

    /// The body of the next record.
    pub fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        loop {
            if !self.open()? {
                return Ok(None);
            }
            let Some(segment) = &mut self.open else { return Ok(None) };
            let record = segment.record(self.place.offset, self.place.seq);
            if let Some(body) = record.map_err(|error| failure(&error))? {
                self.place.offset += (record::PREFIX + body.len()) as u64;
                self.place.seq += 1;
                return Ok(Some(body));
            }
            let ended = self.place.offset == segment.len && self.place.seq != self.place.segment;
            if !ended || !path(self.dir, self.place.seq).exists() {
                return Ok(None);
            }
            self.place.segment = self.place.seq;
            self.place.offset = 0;
            self.open = None;
        }
    }

    /// Makes sure that a segment is open; whether there is one.
    fn open(&mut self) -> Result<bool, StoreError> {
        if self.open.is_some() {
            return Ok(true);
        }
        let path = path(self.dir, self.place.segment);
        let opened = OpenSegment::open(&path).map_err(|error| failure(&error))?;
        let Some(mut segment) = opened else { return Ok(false) };
        if self.place.offset == 0 {
            if !segment.has_header(&path)? {
                return Ok(false);
            }
            self.place.offset = HEADER;
        }
        self.open = Some(segment);
        Ok(true)
    }
}

impl OpenSegment {
    fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let len = file.metadata()?.len();
        Ok(Some(Self { file, len, chunk: Bytes::new(), chunk_at: 0 }))
    }

    fn has_header(&mut self, path: &Path) -> Result<bool, StoreError> {
        let header = self.bytes(0, HEADER).map_err(|error| failure(&error))?;
        let Some(header) = header.filter(|header| header.starts_with(MAGIC)) else {
            return Ok(false);
        };
        match record::u32_at(&header, MAGIC.len()) {
            Some(version) if version > VERSION => Err(StoreError::Refused(format!(
                "`{}` was written by a newer version of gembridge (format {version}, this one knows {VERSION}); \
                 use that version",
                path.display()
            ))),
            _ => Ok(true),
        }
    }

    fn record(&mut self, offset: u64, seq: u64) -> io::Result<Option<Bytes>> {
        let Some(prefix) = self.bytes(offset, record::PREFIX as u64)? else { return Ok(None) };
        let Some((length, checksum)) = record::prefix(&prefix) else { return Ok(None) };
        let body = self.bytes(offset + record::PREFIX as u64, length as u64)?;
        Ok(body
            .filter(|body| crc32fast::hash(body) == checksum && record::head(body).is_some_and(|head| head.seq == seq)))
    }

    /// Exactly these bytes of the file, or `None` when it is shorter.
    fn bytes(&mut self, offset: u64, len: u64) -> io::Result<Option<Bytes>> {
        if self.len.saturating_sub(offset) < len {
            return Ok(None);
        }
        // What the file holds in whole is no longer than memory can address here.
        let length = usize::try_from(len).map_err(io::Error::other)?;
        let loaded = offset >= self.chunk_at && offset + len <= self.chunk_at + self.chunk.len() as u64;
        if !loaded {
            let rest = usize::try_from(self.len - offset).unwrap_or(usize::MAX);
            self.chunk = read_up_to(&self.file, offset, rest.min(length.max(CHUNK)))?.into();
            self.chunk_at = offset;
        }
        let start = usize::try_from(offset - self.chunk_at).map_err(io::Error::other)?;
        Ok((start + length <= self.chunk.len()).then(|| self.chunk.slice(start..start + length)))
    }
}
