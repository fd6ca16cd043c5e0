//! One log entry as bytes: a length, a checksum, a fixed head, the event, the frame.
//!
//! Text that is a slice of its frame is kept as a range of the frame, so that a token is stored once and costs no
//! parsing on either way.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use gembridge_core::log::LogEntry;
use gembridge_core::model::{Dialect, Event, Frame, Seq, Text, Timestamp, TurnId};
use gembridge_core::store::StoreError;
use serde::Serialize as _;
use serde_json::ser::Formatter;

/// Before every body: its length and its CRC-32.
pub(super) const PREFIX: usize = 8;
/// The fixed part of a body. A length below it is never valid, so that a stretch of zeros is not a record.
const HEAD: usize = 36;

const SHAPE_JSON: u8 = 0;
const SHAPE_TEXT: u8 = 1;
const SHAPE_THOUGHT: u8 = 2;
const HAS_TURN: u8 = 1;
const IS_LAST: u8 = 2;

/// Where a record stands in the batch that it was appended with, in files of earlier versions: there a batch that has no
/// last record was refused half way through, and none of it counts. A frame of the journal holds its whole batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InBatch {
    MoreFollow,
    Last,
}

/// What the index needs of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub seq: u64,
    pub at: Timestamp,
    pub turn: Option<TurnId>,
}

/// Appends the record of `entry` to `out`.
pub(super) fn encode(entry: &LogEntry, out: &mut Vec<u8>) -> Result<(), StoreError> {
    let start = out.len();
    let too_large = || StoreError::Refused(format!("entry {} is too large to be stored: over 4 GiB", entry.seq.0));
    out.extend_from_slice(&[0; PREFIX + HEAD]);
    let body = start + PREFIX;
    let (shape, first, second) = match range_of_text(entry) {
        Some((shape, range)) => (shape, range.start, range.end),
        None => (SHAPE_JSON, write_json(&entry.event, out)?, 0),
    };
    let dialect = entry.frame.as_ref().map_or(0, |frame| {
        out.extend_from_slice(&frame.bytes);
        dialect_code(frame.dialect)
    });
    let word = |number: usize| u32::try_from(number).map_err(|_| too_large());
    let length = word(out.len() - body)?;

    let head = &mut out[body..body + HEAD];
    head[0..8].copy_from_slice(&entry.seq.0.to_le_bytes());
    head[8..16].copy_from_slice(&entry.at.0.to_le_bytes());
    head[16..24].copy_from_slice(&entry.turn.map_or(0, |turn| turn.0).to_le_bytes());
    head[24] = if entry.turn.is_some() { HAS_TURN } else { 0 } | IS_LAST;
    head[25] = shape;
    head[26] = dialect;
    head[28..32].copy_from_slice(&word(first)?.to_le_bytes());
    head[32..36].copy_from_slice(&word(second)?.to_le_bytes());

    let checksum = crc32fast::hash(&out[body..]);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..body].copy_from_slice(&checksum.to_le_bytes());
    Ok(())
}

fn range_of_text(entry: &LogEntry) -> Option<(u8, Range<usize>)> {
    let frame = entry.frame.as_ref()?;
    let (shape, text) = match &entry.event {
        Event::Text(text) => (SHAPE_TEXT, text),
        Event::Thought(text) => (SHAPE_THOUGHT, text),
        _ => return None,
    };
    text.range_in(&frame.bytes).map(|range| (shape, range))
}

fn write_json(event: &Event, out: &mut Vec<u8>) -> Result<usize, StoreError> {
    let start = out.len();
    event
        .serialize(&mut serde_json::Serializer::with_formatter(&mut *out, BytesAsText))
        .map_err(|error| StoreError::Refused(format!("an event cannot be stored: {error}")))?;
    Ok(out.len() - start)
}

/// Writes byte strings, which nearly always are JSON themselves, as a string instead of a list of numbers.
struct BytesAsText;

impl Formatter for BytesAsText {
    fn write_byte_array<W: ?Sized + io::Write>(&mut self, mut writer: &mut W, value: &[u8]) -> io::Result<()> {
        match std::str::from_utf8(value) {
            Ok(text) => serde_json::to_writer(&mut writer, text),
            Err(_) => serde_json::to_writer(&mut writer, value),
        }
        .map_err(io::Error::from)
    }
}

/// The bodies of records that follow each other, until the first that is not whole.
pub(super) struct EntryBodies {
    rest: Bytes,
}

impl EntryBodies {
    pub fn in_bytes(bytes: Bytes) -> Self {
        Self { rest: bytes }
    }
}

impl Iterator for EntryBodies {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let (length, checksum) = prefix(&self.rest)?;
        let end = PREFIX.checked_add(length).filter(|end| *end <= self.rest.len())?;
        let body = self.rest.slice(PREFIX..end);
        if crc32fast::hash(&body) != checksum {
            return None;
        }
        self.rest = self.rest.slice(end..);
        Some(body)
    }
}

/// Appends a record by its body.
pub(super) fn put(body: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(body).to_le_bytes());
    out.extend_from_slice(body);
}

/// Length and checksum of the body that follows; `None` when no body has that length.
pub(super) fn prefix(bytes: &[u8]) -> Option<(usize, u32)> {
    let length = u32_at(bytes, 0)? as usize;
    let checksum = u32_at(bytes, 4)?;
    (length >= HEAD).then_some((length, checksum))
}

pub(super) fn head(body: &[u8]) -> Option<Head> {
    let turn = TurnId(u64_at(body, 16)?);
    Some(Head {
        seq: u64_at(body, 0)?,
        at: Timestamp(u64_at(body, 8)?),
        turn: (*body.get(24)? & HAS_TURN != 0).then_some(turn),
    })
}

pub(super) fn in_batch(body: &[u8]) -> InBatch {
    match body.get(24) {
        Some(flags) if flags & IS_LAST != 0 => InBatch::Last,
        _ => InBatch::MoreFollow,
    }
}

/// Reads a body whose checksum was right. Frames and texts of the entry are slices of `body`.
pub(super) fn decode(body: &Bytes) -> Result<LogEntry, StoreError> {
    let damaged = |what: &str| StoreError::Damaged(format!("a log entry has {what}"));
    let cut_short = || damaged("no end");
    let Head { seq, at, turn } = head(body).ok_or_else(cut_short)?;
    let (shape, dialect) = (body[25], body[26]);
    let first = u32_at(body, 28).ok_or_else(cut_short)? as usize;
    let second = u32_at(body, 32).ok_or_else(cut_short)? as usize;

    let json_end = if shape == SHAPE_JSON { HEAD.saturating_add(first) } else { HEAD };
    if json_end > body.len() {
        return Err(cut_short());
    }
    let frame = match dialect {
        0 => None,
        code => Some(Frame {
            dialect: dialect_of(code).ok_or_else(|| damaged("a frame of an unknown dialect"))?,
            bytes: body.slice(json_end..),
        }),
    };
    let text = || {
        let bytes = frame.as_ref().map(|frame| &frame.bytes);
        let bytes = bytes.filter(|bytes| first <= second && second <= bytes.len());
        bytes
            .map(|bytes| Text::escaped(bytes.slice(first..second)))
            .ok_or_else(|| damaged("text that lies outside its frame"))
    };
    let event = match shape {
        SHAPE_JSON => serde_json::from_slice(&body[HEAD..json_end])
            .map_err(|error| damaged(&format!("an event that cannot be read: {error}")))?,
        SHAPE_TEXT => Event::Text(text()?),
        SHAPE_THOUGHT => Event::Thought(text()?),
        _ => return Err(damaged("an unknown shape")),
    };
    Ok(LogEntry { seq: Seq(seq), at, turn, event, frame })
}

fn dialect_code(dialect: Dialect) -> u8 {
    match dialect {
        Dialect::Acp => 1,
        Dialect::Headless => 2,
        Dialect::A2a => 3,
    }
}

fn dialect_of(code: u8) -> Option<Dialect> {
    match code {
        1 => Some(Dialect::Acp),
        2 => Some(Dialect::Headless),
        3 => Some(Dialect::A2a),
        _ => None,
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}
