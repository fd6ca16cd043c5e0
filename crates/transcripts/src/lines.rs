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
    buffer: Vec<u8>,
    number: u64,
    longest: usize,
}

impl<R: BufRead> Lines<R> {
    pub fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), number: 0, longest: LONGEST }
    }

    #[cfg(test)]
    fn capped(reader: R, longest: usize) -> Self {
        Self { longest, ..Self::new(reader) }
    }

    /// The next line that is not blank, with its number.
    pub fn next(&mut self) -> io::Result<Option<(u64, Line<'_>)>> {
        loop {
            self.buffer.clear();
            let Some(length) = self.fill()? else { return Ok(None) };
            self.number += 1;
            if length > self.longest {
                return Ok(Some((
                    self.number,
                    Line::Damaged(format!("the line is longer than {} bytes", self.longest)),
                )));
            }
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        let line = match std::str::from_utf8(&self.buffer) {
            Ok(text) => Line::Text(text),
            Err(error) => Line::Damaged(format!("the line is not UTF-8: {error}")),
        };
        Ok(Some((self.number, line)))
    }

    /// Reads up to the next line break, keeping no more than the cap. Its length, or `None` at the end.
    fn fill(&mut self) -> io::Result<Option<usize>> {
        let mut length = 0;
        loop {
            let available = match self.reader.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if available.is_empty() {
                return Ok((length > 0).then_some(length));
            }
            let end = memchr::memchr(b'\n', available);
            let taken = end.unwrap_or(available.len());
            let room = self.longest.saturating_sub(self.buffer.len());
            self.buffer.extend_from_slice(&available[..taken.min(room)]);
            length += taken;
            let used = taken + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(length));
            }
        }
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
