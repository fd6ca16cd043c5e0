//! The lines of a file, one at a time in one buffer, so that memory does not grow with the file.

use std::io::{self, BufRead};

/// A line beyond this is reported and skipped.
const LONGEST: usize = 64 << 20;

pub(crate) enum Line<'a> {
    Text(&'a str),
    Damaged(String),
}

pub(crate) struct Lines<R> {
    reader: R,
    /// Lines that do not lie in the reader's own buffer as a whole.
    gathered: Vec<u8>,
    /// What the last line took of the reader's buffer.
    taken: usize,
    number: u64,
    longest: usize,
}

/// Where a line lies, and its length.
#[derive(Clone, Copy)]
enum Place {
    InReader(usize),
    /// Cut at the cap.
    Gathered(usize),
}

impl<R: BufRead> Lines<R> {
    pub fn new(reader: R) -> Self {
        Self { reader, gathered: Vec::new(), taken: 0, number: 0, longest: LONGEST }
    }

    #[cfg(test)]
    fn capped(reader: R, longest: usize) -> Self {
        Self { longest, ..Self::new(reader) }
    }

    /// The next line that is not blank, with its number.
    pub fn next(&mut self) -> io::Result<Option<(u64, Line<'_>)>> {
        let place = loop {
            self.reader.consume(std::mem::take(&mut self.taken));
            let Some(place) = self.find()? else { return Ok(None) };
            self.number += 1;
            let (Place::InReader(length) | Place::Gathered(length)) = place;
            if length > self.longest {
                let reason = format!("the line is longer than {} bytes", self.longest);
                return Ok(Some((self.number, Line::Damaged(reason))));
            }
            if !self.bytes(place)?.trim_ascii().is_empty() {
                break place;
            }
        };
        let number = self.number;
        let line = match std::str::from_utf8(self.bytes(place)?) {
            Ok(text) => Line::Text(text),
            Err(error) => Line::Damaged(format!("the line is not UTF-8: {error}")),
        };
        Ok(Some((number, line)))
    }

    fn bytes(&mut self, place: Place) -> io::Result<&[u8]> {
        match place {
            // Nothing was consumed since the line was found, so this reads nothing.
            Place::InReader(length) => Ok(&self.reader.fill_buf()?[..length]),
            Place::Gathered(_) => Ok(&self.gathered),
        }
    }

    /// Finds the next line, which is copied only if it lies across the end of the reader's buffer. `None` at the end.
    fn find(&mut self) -> io::Result<Option<Place>> {
        if let Some(end) = memchr::memchr(b'\n', self.available()?) {
            self.taken = end + 1;
            return Ok(Some(Place::InReader(end)));
        }
        self.gathered.clear();
        let mut length = 0;
        loop {
            let room = self.longest.saturating_sub(self.gathered.len());
            self.available()?;
            // Buffered now, so this reads nothing; borrowed apart from what it is copied to.
            let available = self.reader.fill_buf()?;
            if available.is_empty() {
                return Ok((length > 0).then_some(Place::Gathered(length)));
            }
            let end = memchr::memchr(b'\n', available);
            let taken = end.unwrap_or(available.len());
            self.gathered.extend_from_slice(&available[..taken.min(room)]);
            length += taken;
            self.reader.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(Some(Place::Gathered(length)));
            }
        }
    }

    /// What the reader has in its buffer, which is read if it is empty.
    fn available(&mut self) -> io::Result<&[u8]> {
        while let Err(error) = self.reader.fill_buf() {
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        self.reader.fill_buf()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], longest: usize) -> Vec<(u64, Result<String, String>)> {
        let mut lines = Lines::capped(io::BufReader::with_capacity(3, bytes), longest);
        let mut found = Vec::new();
        while let Some((number, line)) = lines.next().unwrap() {
            found.push(match line {
                Line::Text(text) => (number, Ok(text.to_owned())),
                Line::Damaged(reason) => (number, Err(reason)),
            });
        }
        found
    }

    #[test]
    fn blank_lines_are_counted_and_skipped_and_the_last_line_needs_no_break() {
        assert_eq!(read(b"one\n\n  \ntwo", 100), [(1, Ok("one".to_owned())), (4, Ok("two".to_owned()))]);
        assert_eq!(read(b"", 100), []);
    }

    #[test]
    fn a_line_that_is_too_long_or_not_text_is_damage_and_the_next_one_is_read() {
        let found = read(b"123456789\n\xff\nok\n", 8);
        assert_eq!(found[0], (1, Err("the line is longer than 8 bytes".to_owned())));
        assert!(found[1].1.as_ref().unwrap_err().starts_with("the line is not UTF-8"));
        assert_eq!(found[2], (3, Ok("ok".to_owned())));
    }
}
