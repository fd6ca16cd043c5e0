//! The splitter behind the reader: bytes in, batches of whole lines out, no I/O.

use bytes::{Bytes, BytesMut};
use memchr::{memchr, memchr_iter, memrchr};

use super::LineError;
use crate::excerpt::escape_excerpt;

/// One allocation serves many small reads, so that lines kept by a consumer do not each pin a buffer of their own.
const CHUNK: usize = 256 * 1024;

/// A read gets at least this much room.
const MIN_READ: usize = 64 * 1024;

/// Beyond this a line gets its whole limit at once: growing in steps would hold the old and the new copy together.
const LARGE_LINE: usize = 1024 * 1024;

const EXCERPT: usize = 200;

/// Cuts a stream of bytes into lines of at most `limit` bytes, the newline not counted.
#[derive(Debug)]
pub struct LineSplitter {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no newline.
    scanned: usize,
    limit: usize,
    /// Set once a line was too long: the start of it.
    overlong: Option<String>,
}

impl LineSplitter {
    pub fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), scanned: 0, limit, overlong: None }
    }

    /// Adds bytes from the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Room for a read straight into the splitter. Only append to it.
    pub fn room(&mut self) -> &mut BytesMut {
        let used = self.buffer.len();
        if self.buffer.capacity() - used < MIN_READ {
            let more = if used < LARGE_LINE { CHUNK.max(used) } else { (self.limit + MIN_READ).saturating_sub(used) };
            self.buffer.reserve(more.max(MIN_READ));
        }
        &mut self.buffer
    }

    /// All whole lines so far, in order; `None` when there is no whole line.
    pub fn take_lines(&mut self) -> Result<Option<Batch>, LineError> {
        if let Some(excerpt) = &self.overlong {
            return Err(LineError::TooLong { limit: self.limit, excerpt: excerpt.clone() });
        }
        // No line can be too long in a buffer that is not: then the last newline is all there is to find.
        let whole = if self.buffer.len() <= self.limit {
            memrchr(b'\n', &self.buffer[self.scanned..]).map_or(0, |last| self.scanned + last + 1)
        } else {
            self.whole_lines_within_limit()
        };
        if whole > 0 {
            return Ok(Some(self.cut(whole)));
        }
        if self.buffer.len() > self.limit {
            let excerpt = escape_excerpt(&self.buffer, EXCERPT);
            self.buffer = BytesMut::new();
            self.overlong = Some(excerpt.clone());
            return Err(LineError::TooLong { limit: self.limit, excerpt });
        }
        self.scanned = self.buffer.len();
        Ok(None)
    }

    /// What came after the last newline.
    pub fn unfinished(&self) -> &[u8] {
        &self.buffer
    }

    /// The length of the whole lines before the first one that is too long.
    fn whole_lines_within_limit(&self) -> usize {
        let mut whole = 0;
        for newline in memchr_iter(b'\n', &self.buffer) {
            if newline - whole > self.limit {
                break;
            }
            whole = newline + 1;
        }
        whole
    }

    fn cut(&mut self, whole: usize) -> Batch {
        let outgrown = self.buffer.capacity() > 2 * CHUNK;
        let lines = self.buffer.split_to(whole).freeze();
        if outgrown {
            // The large buffer goes with its lines instead of staying with a child that may never need it again.
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        self.scanned = 0;
        Batch { lines }
    }
}

/// Whole lines that came together, in one shared buffer.
#[derive(Debug, Clone)]
pub struct Batch {
    lines: Bytes,
}

impl Batch {
    /// The lines without their newlines, borrowed.
    pub fn iter(&self) -> Lines<'_> {
        Lines { rest: &self.lines }
    }

    /// Keeps a line that [`Batch::iter`] lent, without copying it.
    ///
    /// # Panics
    /// If `line` is not part of this batch.
    pub fn keep(&self, line: &[u8]) -> Bytes {
        self.lines.slice_ref(line)
    }
}

impl<'a> IntoIterator for &'a Batch {
    type Item = &'a [u8];
    type IntoIter = Lines<'a>;

    fn into_iter(self) -> Lines<'a> {
        self.iter()
    }
}

impl IntoIterator for Batch {
    type Item = Bytes;
    type IntoIter = SharedLines;

    fn into_iter(self) -> SharedLines {
        SharedLines { rest: self.lines }
    }
}

/// Borrowed lines of a [`Batch`].
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let newline = memchr(b'\n', self.rest)?;
        let line = &self.rest[..newline];
        self.rest = &self.rest[newline + 1..];
        Some(line)
    }
}

/// Lines of a [`Batch`] that share its buffer.
#[derive(Debug)]
pub struct SharedLines {
    rest: Bytes,
}

impl Iterator for SharedLines {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let newline = memchr(b'\n', &self.rest)?;
        let mut line = self.rest.split_to(newline + 1);
        line.truncate(newline);
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Feeds `pieces` one by one: the lines until the end or the first error, what was left, whether it failed.
    fn split<'a>(pieces: impl Iterator<Item = &'a [u8]>, limit: usize) -> (Vec<Bytes>, Vec<u8>, bool) {
        let mut splitter = LineSplitter::new(limit);
        let mut lines = Vec::new();
        for piece in pieces {
            splitter.room();
            splitter.push(piece);
            loop {
                match splitter.take_lines() {
                    Ok(Some(batch)) => lines.extend(batch),
                    Ok(None) => break,
                    Err(_) => return (lines, Vec::new(), true),
                }
            }
        }
        (lines, splitter.unfinished().to_vec(), false)
    }

    proptest! {
        #[test]
        fn any_way_of_splitting_the_stream_gives_the_same_lines(
            bytes in vec(prop_oneof![4 => any::<u8>(), 1 => Just(b'\n')], 0..600),
            cuts in vec(1_usize..40, 1..40),
            limit in 1_usize..80,
        ) {
            let mut rest = &bytes[..];
            let mut pieces = Vec::new();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break; }
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            let whole = split(std::iter::once(&bytes[..]), limit);
            prop_assert_eq!(&split(pieces.into_iter(), limit), &whole);

            let mut expected: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            let unfinished = expected.pop().unwrap_or_default();
            let fits = expected.iter().take_while(|line| line.len() <= limit).count();
            prop_assert_eq!(&whole.0, &expected[..fits]);
            prop_assert_eq!(whole.2, fits < expected.len() || unfinished.len() > limit);
        }
    }

    #[test]
    fn a_line_of_exactly_the_limit_passes_and_one_byte_more_does_not() {
        assert_eq!(split([&b"12345\n"[..]].into_iter(), 5), (vec![Bytes::from("12345")], vec![], false));
        assert!(split([&b"123456"[..]].into_iter(), 5).2);
    }

    #[test]
    fn a_line_that_is_too_long_stays_an_error_and_frees_its_memory() {
        let mut splitter = LineSplitter::new(1000);
        splitter.push(&[b'x'; 5000]);
        for _ in 0..2 {
            let error = splitter.take_lines().unwrap_err().to_string();
            assert!(error.starts_with("a line is longer than 1000 bytes; it starts with `xxx"), "{error}");
            assert_eq!(splitter.buffer.capacity(), 0);
        }
    }

    #[test]
    fn a_large_line_does_not_leave_a_large_buffer_behind() {
        let mut splitter = LineSplitter::new(20_000_000);
        let read = vec![b'x'; MIN_READ];
        for _ in 0..80 {
            splitter.room().extend_from_slice(&read);
        }
        splitter.push(b"\nnext");
        let batch = splitter.take_lines().unwrap().unwrap();
        assert_eq!(batch.iter().next().unwrap().len(), 80 * MIN_READ);
        assert_eq!(splitter.unfinished(), b"next");
        assert!(splitter.room().capacity() <= 2 * CHUNK);
    }

    #[test]
    fn small_reads_share_one_allocation_while_their_lines_are_kept() {
        let mut splitter = LineSplitter::new(1000);
        let kept: Vec<Bytes> = (0..100)
            .flat_map(|_| {
                splitter.room();
                splitter.push(b"0123456789\n");
                splitter.take_lines().unwrap().unwrap()
            })
            .collect();
        let addresses: Vec<usize> = kept.iter().map(|line| line.as_ptr().addr()).collect();
        assert!(addresses.windows(2).all(|pair| pair[1] - pair[0] == 11));
    }
}
