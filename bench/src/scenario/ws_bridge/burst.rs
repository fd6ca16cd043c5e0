//! What a client must see of a burst: every update, in order, with every member as the agent wrote it.

use anyhow::Context as _;
use memchr::memmem;
use serde_json::{Value, json};

use crate::frames::Script;
use crate::websocket::{Reading, WebSocket};

/// What tells a client that a burst is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The answer to its prompt.
    Answer,
    /// The gateway's word to those who watch.
    Turn,
}

/// Reads one burst to its end.
pub async fn read(socket: &mut WebSocket, script: Script, end: End) -> anyhow::Result<()> {
    let mut burst = Burst::new(script, end);
    socket.take(|message| burst.take(message)).await?;
    burst.check()
}

struct Burst {
    script: Script,
    end: End,
    seen: u32,
    /// What stands around the text and our marks, in every message the same.
    shape: Option<Shape>,
    /// The number of the last message, where messages have numbers.
    seq: Option<u64>,
    expected: Vec<u8>,
}

#[derive(PartialEq, Eq)]
struct Shape {
    before: Vec<u8>,
    between: Vec<u8>,
    after: Vec<u8>,
}

/// A message taken apart.
struct Parts<'a> {
    before: &'a [u8],
    /// The number in our marks, where there are marks.
    seq: Option<u64>,
    between: &'a [u8],
    text: &'a [u8],
    after: &'a [u8],
}

/// One message in so many is also read as JSON.
const SAMPLED: u32 = 4096;

const MARKS: &[u8] = br#""_meta":{"gembridge":{"seq":"#;
const TEXT: &[u8] = br#""text":""#;

impl Burst {
    fn new(script: Script, end: End) -> Self {
        Self { script, end, seen: 0, shape: None, seq: None, expected: Vec::new() }
    }

    fn take(&mut self, message: &[u8]) -> anyhow::Result<Reading> {
        let Some(parts) = Parts::of(message) else { return Ok(self.other(message)) };
        self.seen += 1;
        self.script.write(self.seen, &mut self.expected);
        let said = || String::from_utf8_lossy(message).into_owned();
        anyhow::ensure!(parts.text == self.expected, "piece {} is {}", self.seen, said());
        let is_next = self.seq.is_none_or(|last| parts.seq == Some(last + 1));
        anyhow::ensure!(is_next, "{:?} comes before {}", self.seq, said());
        self.seq = parts.seq;
        let shape = self.shape.get_or_insert_with(|| parts.shape());
        let is_same = shape.before == parts.before && shape.between == parts.between && shape.after == parts.after;
        anyhow::ensure!(is_same, "a message that is unlike the others: {}", said());
        if self.seen % SAMPLED == 1 {
            self.decode(message)?;
        }
        Ok(Reading::GoesOn)
    }

    fn decode(&self, message: &[u8]) -> anyhow::Result<()> {
        let mut read: Value = serde_json::from_slice(message)?;
        let text = std::str::from_utf8(&self.expected)?;
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        anyhow::ensure!(read["jsonrpc"] == "2.0" && read["method"] == "session/update", "no update: {read}");
        let params = read["params"].as_object_mut().context("an update without parameters")?;
        params.remove("_meta");
        anyhow::ensure!(params.get("update") == Some(&update) && params.len() == 2, "not what was sent: {read}");
        Ok(())
    }

    fn other(&self, message: &[u8]) -> Reading {
        let is_over = match self.end {
            End::Answer => memmem::find(message, br#""result":{"#).is_some(),
            End::Turn => memmem::find(message, br#""_gembridge/turn_ended""#).is_some(),
        };
        if is_over { Reading::IsOver } else { Reading::GoesOn }
    }

    fn check(&self) -> anyhow::Result<()> {
        let count = self.script.count();
        anyhow::ensure!(self.seen == count, "{} messages of {count} came", self.seen);
        Ok(())
    }
}

impl<'a> Parts<'a> {
    /// `None`: it is no piece of text.
    fn of(message: &'a [u8]) -> Option<Self> {
        let (before, seq, rest) = match memmem::find(message, MARKS) {
            None => (&message[..0], None, message),
            Some(at) => {
                let marks = &message[at + MARKS.len()..];
                let digits = marks.iter().take_while(|byte| byte.is_ascii_digit());
                let seq = digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
                let end = memmem::find(marks, b"}},")?;
                (&message[..at], Some(seq), &marks[end + 3..])
            }
        };
        let start = memmem::find(rest, TEXT)? + TEXT.len();
        let between = &rest[..start];
        memmem::find(between, br#""agent_message_chunk""#)?;
        let length = memchr::memchr(b'"', &rest[start..])?;
        Some(Self { before, seq, between, text: &rest[start..start + length], after: &rest[start + length..] })
    }

    fn shape(&self) -> Shape {
        Shape { before: self.before.to_vec(), between: self.between.to_vec(), after: self.after.to_vec() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: Script = Script::Chunks { count: 3, size: 10 };

    fn message(number: u32, seq: u32) -> String {
        let mut text = Vec::new();
        SCRIPT.write(number, &mut text);
        let text = String::from_utf8(text).unwrap();
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"_meta":{{"gembridge":{{"seq":{seq},"at":1}}}},"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
        )
    }

    fn read(messages: &[String]) -> anyhow::Result<()> {
        let mut burst = Burst::new(SCRIPT, End::Answer);
        for message in messages {
            assert_eq!(burst.take(message.as_bytes())?, Reading::GoesOn);
        }
        assert_eq!(burst.take(br#"{"id":1,"result":{}}"#)?, Reading::IsOver);
        burst.check()
    }

    #[test]
    fn a_burst_is_whole_with_and_without_marks() {
        let marked: Vec<_> = (1..=3).map(|number| message(number, number + 7)).collect();
        read(&marked).unwrap();
        let bare = |number: u32| message(number, 7).replace(r#""_meta":{"gembridge":{"seq":7,"at":1}},"#, "");
        read(&(1..=3).map(bare).collect::<Vec<_>>()).unwrap();
    }

    #[test]
    fn a_message_that_is_lost_changed_or_numbered_wrong_has_no_score() {
        assert!(read(&[message(1, 1), message(2, 2)]).is_err());
        assert!(read(&[message(1, 1), message(3, 2), message(2, 3)]).is_err());
        assert!(read(&[message(1, 1), message(2, 3), message(3, 4)]).is_err());
        let changed = message(2, 2).replace(r#""type":"text""#, r#""type":"txt""#);
        assert!(read(&[message(1, 1), changed, message(3, 3)]).is_err());
    }
}
