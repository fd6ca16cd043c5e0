//! One step of the journal as bytes: whose it is, what it is, and a checksum over both.
//!
//! ```text
//! 0   length of the payload
//! 4   checksum of everything behind it, changed by the salt of the segment
//! 8   kind
//! 16  session
//! 32  payload
//! ```

use bytes::Bytes;
use gembridge_core::model::SessionId;

use super::record::u32_at;

pub(super) const HEADER: usize = 32;
/// Behind the last frame, so that what a segment held before it was used again is never taken for a frame.
pub(super) const TERMINATOR: [u8; 8] = [0; 8];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Entries of the session's log: one batch, which counts as a whole.
    Entries,
    /// A new session, by its record.
    Created,
    /// The record of a session that is there.
    Updated,
    Deleted,
}

#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub kind: Kind,
    pub session: SessionId,
    pub payload: Bytes,
}

/// Empties `out` and leaves room for the header; the payload is appended by the caller.
pub(super) fn begin(out: &mut Vec<u8>) {
    out.clear();
    out.resize(HEADER, 0);
}

/// Fills in the header of the frame that `out` holds, and ends it. `None` when the payload is too large for any frame.
pub(super) fn finish(out: &mut Vec<u8>, kind: Kind, session: SessionId) -> Option<()> {
    let length = u32::try_from(out.len() - HEADER).ok()?;
    out[..4].copy_from_slice(&length.to_le_bytes());
    out[8] = code(kind);
    out[16..HEADER].copy_from_slice(&session.to_bytes());
    let checksum = crc32fast::hash(&out[8..]);
    out[4..8].copy_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(&TERMINATOR);
    Some(())
}

/// Makes the frame one of the segment that has this salt. Nobody outside knows the salt, so nobody can put words into a
/// session that are read as a frame of another.
pub(super) fn salt(frame: &mut [u8], salt: u32) {
    for (byte, salt) in frame[4..8].iter_mut().zip(salt.to_le_bytes()) {
        *byte ^= salt;
    }
}

/// The frame at the beginning of `bytes`, and how long it is; `None` where none is whole.
pub(super) fn parse(bytes: &Bytes, salt: u32) -> Option<(Frame, usize)> {
    let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
    let checksum = u32_at(bytes, 4)? ^ salt;
    let end = HEADER.checked_add(length).filter(|end| *end <= bytes.len())?;
    let kind = kind(bytes[8])?;
    if crc32fast::hash(&bytes[8..end]) != checksum {
        return None;
    }
    let session = SessionId::from_bytes(bytes[16..HEADER].try_into().ok()?);
    Some((Frame { kind, session, payload: bytes.slice(HEADER..end) }, end))
}

// None is zero: a stretch of zeros is no frame, whatever the salt.
fn code(kind: Kind) -> u8 {
    match kind {
        Kind::Entries => 1,
        Kind::Created => 2,
        Kind::Deleted => 3,
        Kind::Updated => 4,
    }
}

fn kind(code: u8) -> Option<Kind> {
    match code {
        1 => Some(Kind::Entries),
        2 => Some(Kind::Created),
        3 => Some(Kind::Deleted),
        4 => Some(Kind::Updated),
        _ => None,
    }
}
