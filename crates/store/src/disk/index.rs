//! The signposts of a log: a file of fixed-size entries that name borders between records and the starts of turns.
//!
//! An entry is written only when everything before its place is on the disk. So the last one tells what must be
//! there whatever happened, and all of it can be made again from the log.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gembridge_core::model::{Seq, Timestamp, TurnId};
use gembridge_core::store::{StoreError, TurnStart};

use super::files::{failure, read_up_to};
use super::record::{Head, u32_at, u64_at};
use super::segment::LogPosition;

pub(super) const ENTRY: usize = 56;
const IS_TURN: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signpost {
    pub place: LogPosition,
    /// The turn that begins here.
    pub turn: Option<(TurnId, Timestamp)>,
}

/// A signpost as it stands in the file, with its link to the turn before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub signpost: Signpost,
    /// The place in the file, from 1, of the newest start of a turn before this entry. Zero: none.
    previous_turn: u64,
}

pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join("index")
}

/// Decides which records get a signpost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surveyor {
    pub newest_turn: Option<TurnId>,
    pub last: LogPosition,
    pub spacing: u64,
}

impl Surveyor {
    /// The signpost for the record that begins at `place`, if it needs one.
    pub fn survey(&mut self, place: LogPosition, head: Head) -> Option<Signpost> {
        let begins = head.turn.filter(|turn| self.newest_turn.is_none_or(|newest| *turn > newest));
        let is_far =
            place.segment != self.last.segment || place.offset.saturating_sub(self.last.offset) >= self.spacing;
        if begins.is_none() && !is_far {
            return None;
        }
        self.last = place;
        self.newest_turn = begins.or(self.newest_turn);
        Some(Signpost { place, turn: begins.map(|turn| (turn, head.at)) })
    }
}

/// The index of a session at one moment: what is in the file, then what is only in memory yet.
pub(super) struct View {
    pub file: Option<Arc<File>>,
    /// How many entries of the file count.
    pub entries: u64,
    pub pending: Vec<Signpost>,
}

/// An entry of the file is not what was written there.
#[derive(Debug)]
pub(super) enum Unreadable {
    Entry,
    File(io::Error),
}

impl From<Unreadable> for StoreError {
    fn from(error: Unreadable) -> Self {
        match error {
            Unreadable::Entry => Self::Damaged("the index of a session's log".to_owned()),
            Unreadable::File(error) => failure(&error),
        }
    }
}

impl View {
    pub fn open(dir: &Path) -> io::Result<Self> {
        let file = match File::options().read(true).write(true).open(path(dir)) {
            Ok(file) => Some(Arc::new(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let len = file.as_ref().map_or(Ok(0), |file| file.metadata().map(|data| data.len()))?;
        Ok(Self { file, entries: len / ENTRY as u64, pending: Vec::new() })
    }

    /// Forgets what was not wholly written at the end, and gives what is now the last entry.
    pub fn cut_torn_end(&mut self) -> Result<Option<Stored>, Unreadable> {
        while self.entries > 0 {
            match self.stored(self.entries - 1) {
                Ok(stored) => return Ok(Some(stored)),
                Err(Unreadable::Entry) => self.entries -= 1,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Reads every entry; whether all are whole and in order.
    pub fn is_sound(&self) -> Result<bool, Unreadable> {
        let Some(file) = &self.file else { return Ok(true) };
        let len = usize::try_from(self.entries * ENTRY as u64).unwrap_or(usize::MAX);
        let bytes = read_up_to(file, 0, len).map_err(Unreadable::File)?;
        let mut last = LogPosition { seq: 0, segment: 0, offset: 0 };
        Ok(bytes.chunks(ENTRY).all(|bytes| {
            let place = decode(bytes).map(|stored| stored.signpost.place);
            place.is_some_and(|place| std::mem::replace(&mut last, place) <= place)
        }))
    }

    /// The last border at or before entry `seq`.
    pub fn place_before(&self, seq: u64) -> Result<LogPosition, Unreadable> {
        if let Some(near) = self.pending.iter().rev().find(|post| post.place.seq <= seq) {
            return Ok(near.place);
        }
        let (mut low, mut high) = (0, self.entries);
        let mut best = LogPosition::START;
        while low < high {
            let middle = low + (high - low) / 2;
            let place = self.stored(middle)?.signpost.place;
            if place.seq <= seq {
                best = place;
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(best)
    }

    /// The newest starts of turns, newest last.
    pub fn turn_starts(&self, limit: usize) -> Result<Vec<TurnStart>, Unreadable> {
        let start =
            |post: &Signpost| post.turn.map(|(turn, at)| TurnStart { turn, after: Seq(post.place.seq - 1), at });
        let mut starts: Vec<_> = self.pending.iter().rev().filter_map(start).take(limit).collect();
        let mut next = self.newest_turn()?;
        while starts.len() < limit && next > 0 {
            let stored = self.stored(next - 1)?;
            starts.push(start(&stored.signpost).ok_or(Unreadable::Entry)?);
            next = stored.previous_turn;
        }
        starts.reverse();
        Ok(starts)
    }

    /// The place in the file, from 1, of the newest start of a turn.
    pub fn newest_turn(&self) -> Result<u64, Unreadable> {
        if self.entries == 0 {
            return Ok(0);
        }
        let last = self.stored(self.entries - 1)?;
        Ok(if last.signpost.turn.is_some() { self.entries } else { last.previous_turn })
    }

    fn stored(&self, number: u64) -> Result<Stored, Unreadable> {
        let file = self.file.as_ref().ok_or(Unreadable::Entry)?;
        let bytes = read_up_to(file, number * ENTRY as u64, ENTRY).map_err(Unreadable::File)?;
        decode(&bytes).filter(|stored| stored.previous_turn <= number).ok_or(Unreadable::Entry)
    }
}

/// Appends `posts` as they will stand after entry number `entries` of the file; gives the newest turn after them.
pub(super) fn encode(posts: &[Signpost], mut entries: u64, mut newest_turn: u64, out: &mut Vec<u8>) -> u64 {
    for post in posts {
        entries += 1;
        let mut bytes = [0; ENTRY];
        bytes[8..16].copy_from_slice(&post.place.seq.to_le_bytes());
        bytes[16..24].copy_from_slice(&post.place.segment.to_le_bytes());
        bytes[24..32].copy_from_slice(&post.place.offset.to_le_bytes());
        bytes[48..56].copy_from_slice(&newest_turn.to_le_bytes());
        if let Some((turn, at)) = post.turn {
            bytes[4] = IS_TURN;
            bytes[32..40].copy_from_slice(&turn.0.to_le_bytes());
            bytes[40..48].copy_from_slice(&at.0.to_le_bytes());
            newest_turn = entries;
        }
        let checksum = crc32fast::hash(&bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&bytes);
    }
    newest_turn
}

fn decode(bytes: &[u8]) -> Option<Stored> {
    if bytes.len() != ENTRY || u32_at(bytes, 0)? != crc32fast::hash(&bytes[4..]) {
        return None;
    }
    let place = LogPosition { seq: u64_at(bytes, 8)?, segment: u64_at(bytes, 16)?, offset: u64_at(bytes, 24)? };
    let turn = (TurnId(u64_at(bytes, 32)?), Timestamp(u64_at(bytes, 40)?));
    let turn = (bytes[4] & IS_TURN != 0).then_some(turn);
    // Entries are numbered from 1, so a stretch of zeros is no signpost.
    (place.seq > 0).then_some(Stored { signpost: Signpost { place, turn }, previous_turn: u64_at(bytes, 48)? })
}
