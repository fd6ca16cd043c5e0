//! The last bytes of a child's stderr. Always drained, so a child that floods it is neither blocked nor remembered.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::secrets::Secrets;
use crate::excerpt::escape_excerpt;

const READ_SIZE: usize = 16 * 1024;

/// A view of the tail: cheap to clone, readable at any time, complete once the child has ended.
#[derive(Debug, Clone)]
pub struct StderrTail {
    ring: Arc<Mutex<Ring>>,
    secrets: Arc<Secrets>,
}

#[derive(Debug)]
struct Ring {
    bytes: VecDeque<u8>,
    limit: usize,
    total: u64,
}

impl StderrTail {
    /// The tail never shows `secrets`.
    pub(crate) fn new(limit: usize, secrets: Secrets) -> Self {
        let ring = Ring { bytes: VecDeque::new(), limit, total: 0 };
        Self { ring: Arc::new(Mutex::new(ring)), secrets: Arc::new(secrets) }
    }

    /// The tail on one line, with everything escaped that could forge or clear a log.
    pub fn tail(&self) -> String {
        escape_excerpt(&self.bytes(), usize::MAX)
    }

    /// The tail line by line, each one escaped. The first may be the end of a longer line.
    pub fn lines(&self) -> Vec<String> {
        let bytes = self.bytes();
        let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        if text.is_empty() {
            return Vec::new();
        }
        text.split(|byte| *byte == b'\n').map(|line| escape_excerpt(line, usize::MAX)).collect()
    }

    /// How much the child wrote to stderr in all.
    pub fn total_bytes(&self) -> u64 {
        self.lock().total
    }

    fn bytes(&self) -> Vec<u8> {
        let said: Vec<u8> = self.lock().bytes.iter().copied().collect();
        self.secrets.hide(&said)
    }

    /// Reads until the end of `source`.
    pub(crate) async fn drain(&self, mut source: impl AsyncRead + Unpin) -> std::io::Result<()> {
        // Most children write nothing: the buffer is made when there is something to read.
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            buffer.reserve(READ_SIZE);
            if source.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
            self.lock().append(&buffer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        // A ring of bytes has no state that a panic could leave half-made.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn append(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let kept = &bytes[bytes.len().saturating_sub(self.limit)..];
        let surplus = (self.bytes.len() + kept.len()).saturating_sub(self.limit);
        self.bytes.drain(..surplus);
        self.bytes.extend(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_tail_holds_the_last_bytes_only() {
        let tail = StderrTail::new(8, Secrets::default());
        tail.drain(&b"first line\nsecond\x1b\nx"[..]).await.unwrap();
        assert_eq!(tail.total_bytes(), 20);
        assert_eq!(tail.tail(), "econd\\u{1b}\\nx");
        assert_eq!(tail.lines(), ["econd\\u{1b}", "x"]);
    }

    #[tokio::test]
    async fn many_small_writes_keep_the_same_tail_as_one_large() {
        let tail = StderrTail::new(100, Secrets::default());
        let all: Vec<u8> = (b'a'..=b'z').cycle().take(1000).collect();
        for piece in all.chunks(7) {
            tail.drain(piece).await.unwrap();
        }
        assert_eq!(tail.tail().as_bytes(), &all[900..]);
    }
}
