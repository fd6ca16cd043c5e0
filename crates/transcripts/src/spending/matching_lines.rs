//! The lines of a file in which a word stands. What lies between them is passed over at the speed of a search.

use std::io::{self, BufRead};
use std::path::Path;

use memchr::{memchr, memchr_iter, memmem, memrchr};

use crate::damage::Damage;
use crate::files;

/// What is read at once.
const CHUNK: usize = 1 << 20;
/// A line beyond this is reported and passed over.
const LONGEST: usize = 64 << 20;

/// Hands each line of a file that has `word` in it to `each`, which says what is wrong with it if something is.
pub(super) fn for_each(
    path: &Path,
    word: &[u8],
    damages: &mut Vec<Damage>,
    each: &mut dyn FnMut(&[u8]) -> Result<(), String>,
) {
    let mut found = Found { path, word: memmem::Finder::new(word), lines: 0, damages, each };
    let read = files::open(path).and_then(|file| found.all(file));
    if let Err(error) = read {
        let reason = format!("cannot be read to its end: {error}");
        found.damages.push(Damage { path: path.to_owned(), line: None, reason });
    }
}

struct Found<'a> {
    path: &'a Path,
    word: memmem::Finder<'a>,
    /// Line breaks before what is being looked at.
    lines: u64,
    damages: &'a mut Vec<Damage>,
    each: &'a mut dyn FnMut(&[u8]) -> Result<(), String>,
}

impl Found<'_> {
    fn all(&mut self, mut file: Box<dyn BufRead>) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK];
        let mut filled = 0;
        loop {
            match file.read(&mut buffer[filled..]) {
                Ok(0) => {
                    self.look(&buffer[..filled]);
                    return Ok(());
                }
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if filled < buffer.len() {
                continue;
            }
            if let Some(end) = memrchr(b'\n', &buffer) {
                self.look(&buffer[..=end]);
                buffer.copy_within(end + 1.., 0);
                filled -= end + 1;
            } else if buffer.len() < LONGEST {
                buffer.resize((buffer.len() * 2).min(LONGEST), 0);
            } else {
                let reason = format!("the line is longer than {LONGEST} bytes");
                self.damages.push(Damage { path: self.path.to_owned(), line: Some(self.lines + 1), reason });
                filled = self.pass_over_line(&mut file, &mut buffer)?;
            }
        }
    }

    /// Reads up to the next line break. How much of the buffer holds what comes after it.
    fn pass_over_line(&mut self, file: &mut Box<dyn BufRead>, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = file.read(buffer)?;
            if read == 0 {
                return Ok(0);
            }
            if let Some(end) = memchr(b'\n', &buffer[..read]) {
                self.lines += 1;
                buffer.copy_within(end + 1..read, 0);
                return Ok(read - end - 1);
            }
        }
    }

    /// Looks through whole lines.
    fn look(&mut self, lines: &[u8]) {
        let (mut at, mut counted) = (0, 0);
        while let Some(hit) = self.word.find(&lines[at..]).map(|hit| at + hit) {
            let start = memrchr(b'\n', &lines[..hit]).map_or(0, |end| end + 1);
            let end = memchr(b'\n', &lines[hit..]).map_or(lines.len(), |end| hit + end);
            if let Err(reason) = (self.each)(&lines[start..end]) {
                self.lines += count(&lines[counted..start]);
                counted = start;
                self.damages.push(Damage { path: self.path.to_owned(), line: Some(self.lines + 1), reason });
            }
            at = end;
        }
        self.lines += count(&lines[counted..]);
    }
}

fn count(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(bytes: &[u8]) -> (Vec<String>, Vec<(Option<u64>, String)>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, bytes).unwrap();
        let (mut lines, mut damages) = (Vec::new(), Vec::new());
        for_each(&path, b"x", &mut damages, &mut |line| {
            lines.push(String::from_utf8_lossy(line).chars().take(20).collect());
            if line.starts_with(b"bad") { Err("bad".to_owned()) } else { Ok(()) }
        });
        (lines, damages.into_iter().map(|damage| (damage.line, damage.reason)).collect())
    }

    #[test]
    fn lines_with_the_word_are_found_once_each_with_the_number_of_those_that_are_damaged() {
        let (lines, damages) = found(b"one\nxx and x\n\nbad x\ntwo\nlast x");
        assert_eq!(lines, ["xx and x", "bad x", "last x"]);
        assert_eq!(damages, [(Some(4), "bad".to_owned())]);
        assert_eq!(found(b""), (Vec::new(), Vec::new()));
    }

    #[test]
    fn lines_that_lie_across_what_is_read_at_once_are_whole() {
        let mut bytes = vec![b'a'; CHUNK - 3];
        bytes.extend_from_slice(b"\nbad x y\n");
        bytes.extend(std::iter::repeat_n(b'b', 3 * CHUNK));
        bytes.extend_from_slice(b"x\nend x\n");
        let (lines, damages) = found(&bytes);
        assert_eq!(lines, ["bad x y".to_owned(), "b".repeat(20), "end x".to_owned()]);
        assert_eq!(damages, [(Some(2), "bad".to_owned())]);
    }

    #[test]
    fn a_line_that_is_too_long_is_damage_and_the_next_one_is_read() {
        let mut bytes = vec![b'x'; LONGEST + 10];
        bytes.extend_from_slice(b"\nbad x\n");
        let (lines, damages) = found(&bytes);
        assert_eq!(lines, ["bad x"]);
        assert_eq!(damages.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [Some(1), Some(2)]);
    }

    #[test]
    fn a_file_that_is_not_there_is_damage() {
        let mut damages = Vec::new();
        for_each(Path::new("/nowhere/log"), b"x", &mut damages, &mut |_| Ok(()));
        assert_eq!(damages.len(), 1);
    }
}
