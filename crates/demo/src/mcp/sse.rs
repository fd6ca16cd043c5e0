//! The part of server-sent events that MCP uses: `data` lines, ended by an empty one.

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body;
use serde_json::Value;

use super::http::{Failure, LARGEST_ANSWER};

/// Reads events until the one that answers the request; notifications on the way are passed over.
pub(super) async fn find_answer<B>(body: B, id: u64) -> Result<Value, Failure>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error,
{
    let answers = |message: &Value| message["id"] == id && message.get("method").is_none();
    let found = first(body, answers).await?;
    found.ok_or_else(|| Failure::Told("its event stream ended without the answer".to_owned()))
}

/// Reads messages until one is `wanted`, or the stream ends without it.
pub(super) async fn first<B>(mut body: B, mut wanted: impl FnMut(&Value) -> bool) -> Result<Option<Value>, Failure>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error,
{
    let mut events = Events::default();
    while let Some(frame) = body.frame().await {
        let Some(data) = frame?.data_ref().cloned() else { continue };
        for event in events.feed(&data)? {
            let Ok(message) = serde_json::from_str::<Value>(&event) else { continue };
            if wanted(&message) {
                return Ok(Some(message));
            }
        }
    }
    Ok(None)
}

/// Collects lines into events across the cuts between network reads.
#[derive(Default)]
struct Events {
    line: Vec<u8>,
    data: String,
}

impl Events {
    fn feed(&mut self, bytes: &[u8]) -> Result<Vec<String>, Failure> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if self.line.len() + self.data.len() > LARGEST_ANSWER {
                return Err(Failure::Told(format!("its event is larger than {LARGEST_ANSWER} bytes")));
            }
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                events.extend(self.line_ended(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n'])));
            }
        }
        Ok(events)
    }

    fn line_ended(&mut self, line: &str) -> Option<String> {
        if line.is_empty() {
            return (!self.data.is_empty()).then(|| std::mem::take(&mut self.data));
        }
        if let Some(data) = line.strip_prefix("data:") {
            if !self.data.is_empty() {
                self.data.push('\n');
            }
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_found_across_the_cuts_between_reads() {
        let mut events = Events::default();
        let mut found = Vec::new();
        for piece in [": hi\r\nid: 1\r\nda", "ta: {\"a\":\r", "\ndata: 1}\r\n", "\r\n\ndata:x\n\nrest"] {
            found.extend(events.feed(piece.as_bytes()).unwrap_or_default());
        }
        assert_eq!(found, ["{\"a\":\n1}", "x"]);
    }
}
