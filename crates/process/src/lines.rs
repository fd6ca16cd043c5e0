//! Lines out of a child: large reads, many lines per wake-up, no copies, and a limit that holds whatever is sent.

mod splitter;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::ChildStdout;

pub use splitter::{Batch, LineSplitter};

/// The longest line that is read unless the command says otherwise.
pub const DEFAULT_LINE_LIMIT: usize = 10_000_000;

/// Why no more lines come.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The rest of the output makes no sense any more: end the child.
    #[error("a line is longer than {limit} bytes; it starts with `{excerpt}`")]
    TooLong { limit: usize, excerpt: String },
    #[error("cannot read the child's output: {0}")]
    Read(#[from] std::io::Error),
}

/// Reads batches of lines. One task owns it; a child that writes faster than the owner reads is held up by its pipe.
#[derive(Debug)]
pub struct LineReader<R = ChildStdout> {
    source: R,
    splitter: LineSplitter,
    at_end: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub fn new(source: R, limit: usize) -> Self {
        Self { source, splitter: LineSplitter::new(limit), at_end: false }
    }

    /// All complete lines that are there, or the first ones to come; `None` at the end of the output.
    ///
    /// Dropping the future loses nothing. After [`LineError::TooLong`] every further call fails the same way.
    pub async fn next_batch(&mut self) -> Result<Option<Batch>, LineError> {
        loop {
            if let Some(batch) = self.splitter.take_lines()? {
                return Ok(Some(batch));
            }
            if self.at_end {
                return Ok(None);
            }
            self.at_end = self.source.read_buf(self.splitter.room()).await? == 0;
        }
    }

    /// What came after the last newline. At the end of the output it is noise, not a line.
    pub fn unfinished(&self) -> &[u8] {
        self.splitter.unfinished()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn r5_half_a_line_at_the_end_is_noise_and_not_a_line() {
        let mut reader = LineReader::new(&b"one\ntwo\nhal"[..], 100);
        let batch = reader.next_batch().await.unwrap().unwrap();
        assert_eq!(batch.iter().collect::<Vec<_>>(), [b"one", b"two"]);
        assert!(reader.next_batch().await.unwrap().is_none());
        assert_eq!(reader.unfinished(), b"hal");
        assert!(reader.next_batch().await.unwrap().is_none(), "the end stays the end");
    }

    #[tokio::test]
    async fn r4_bytes_that_are_not_utf8_are_a_line_like_any_other() {
        let mut reader = LineReader::new(&b"\xff\xfe\n\n{}\n"[..], 100);
        let batch = reader.next_batch().await.unwrap().unwrap();
        assert_eq!(batch.iter().collect::<Vec<_>>(), [&b"\xff\xfe"[..], b"", b"{}"]);
    }
}
