//! Messages out of a stream of server-sent events.

use bytes::{Buf, BytesMut};

/// Takes bytes as they come and gives the data of each event that has some.
#[derive(Default)]
pub struct Events {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no end of a line.
    searched: usize,
    data: String,
}

impl Events {
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// What is held of an event that is not whole yet.
    pub fn held(&self) -> usize {
        self.buffer.len() + self.data.len()
    }

    /// The next event that is whole.
    pub fn next(&mut self) -> Option<String> {
        while let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
            let line = self.buffer.split_to(self.searched + end);
            self.buffer.advance(1);
            self.searched = 0;
            let line = line.strip_suffix(b"\r").unwrap_or(&line);
            if line.is_empty() {
                let data = std::mem::take(&mut self.data);
                if !data.is_empty() {
                    return Some(data);
                }
            } else if let Some(value) = line.strip_prefix(b"data:") {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(&String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value)));
            }
        }
        self.searched = self.buffer.len();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_whole_however_they_are_cut() {
        let stream = b": ping\n\ndata: {\"a\":1}\n\nid: 7\r\nevent: message\r\ndata: {\"b\":\r\ndata: 2}\r\n\r\ndata:\n\ndata: half";
        for size in 1..stream.len() {
            let mut events = Events::default();
            let mut all = Vec::new();
            for piece in stream.chunks(size) {
                events.feed(piece);
                all.extend(std::iter::from_fn(|| events.next()));
            }
            assert_eq!(all, ["{\"a\":1}", "{\"b\":\n2}"], "in pieces of {size}");
        }
    }
}
