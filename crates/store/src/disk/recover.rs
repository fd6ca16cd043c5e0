//! Finding the end of a log that was left behind, however its writer ended.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gembridge_core::log::LogEntry;
use gembridge_core::model::TurnId;
use gembridge_core::store::StoreError;

use super::files::{Files, failure, private_file};
use super::index::{ENTRY, Surveyor, Unreadable, View};
use super::record::{self, InBatch};
use super::segment::{self, LogPosition, Scan, Segment};

/// A log as it was found.
pub(super) struct Found {
    pub view: View,
    /// Where the next entry belongs: after the last whole batch.
    pub end: LogPosition,
    /// Everything before it was synced once, as far as is known.
    pub durable: Option<LogPosition>,
    pub newest_turn: Option<TurnId>,
}

/// Looks without touching anything, and believes the index as far as it goes.
pub(super) fn look(dir: &Path, spacing: u64) -> Result<Found, StoreError> {
    match look_by_index(dir, spacing) {
        Err(Looking::Index(Unreadable::Entry)) => look_at_everything(dir, spacing),
        Err(Looking::Index(error)) => Err(error.into()),
        Err(Looking::Log(error)) => Err(error),
        Ok(found) => Ok(found),
    }
}

/// Looks without touching anything, and without any help of the index but for what must be there.
pub(super) fn look_at_everything(dir: &Path, spacing: u64) -> Result<Found, StoreError> {
    let mut view = View::open(dir).map_err(|error| failure(&error))?;
    let durable = view.cut_torn_end()?.map(|stored| stored.signpost.place);
    view.entries = 0;
    survey(dir, view, LogPosition::START, durable, Surveyor { newest_turn: None, last: LogPosition::START, spacing })
}

/// Makes the log end after its last whole record.
pub(super) fn repair(dir: &Path, spacing: u64, files: &dyn Files) -> Result<Found, StoreError> {
    let mut found = look(dir, spacing)?;
    if !found.view.is_sound()? {
        tracing::warn!(log = %dir.display(), "the index of a log was damaged and is made anew");
        found = look_at_everything(dir, spacing)?;
    }
    if let Some(file) = &found.view.file {
        let len = found.view.entries * ENTRY as u64;
        files.truncate(file, len).map_err(|error| failure(&error))?;
    }
    let later = segments_after(dir, found.end.segment)?;
    if found.durable.is_none() && !later.is_empty() {
        return Err(lost(dir, found.end.seq));
    }
    for path in later {
        // They were begun after an entry that a power cut took; nothing in them was ever synced.
        tracing::warn!(segment = %path.display(), "a segment that follows a lost entry is dropped");
        fs::remove_file(&path).map_err(|error| failure(&error))?;
    }
    Ok(found)
}

enum Looking {
    Index(Unreadable),
    Log(StoreError),
}

impl From<Unreadable> for Looking {
    fn from(error: Unreadable) -> Self {
        Self::Index(error)
    }
}

fn look_by_index(dir: &Path, spacing: u64) -> Result<Found, Looking> {
    let mut view = View::open(dir).map_err(Unreadable::File)?;
    let durable = view.cut_torn_end()?.map(|stored| stored.signpost.place);
    let newest_turn = view.turn_starts(1)?.last().map(|start| start.turn);
    let start = durable.unwrap_or(LogPosition::START);
    let surveyor = Surveyor { newest_turn, last: start, spacing };
    survey(dir, view, start, durable, surveyor).map_err(Looking::Log)
}

/// Reads on from `start` and puts up the signposts that are missing.
fn survey(
    dir: &Path,
    mut view: View,
    start: LogPosition,
    durable: Option<LogPosition>,
    mut surveyor: Surveyor,
) -> Result<Found, StoreError> {
    let mut scan = Scan::new(dir, start);
    // What is known after the last whole batch; behind it, pieces of one that was refused or torn may follow.
    let (mut end, mut signposts, mut newest_turn) = (start, 0, surveyor.newest_turn);
    while let Some(body) = scan.next()? {
        let after = scan.place();
        let Some(head) = record::head(&body) else { continue };
        let offset = after.offset - (record::PREFIX + body.len()) as u64;
        view.pending.extend(surveyor.survey(LogPosition { seq: head.seq, offset, ..after }, head));
        if record::in_batch(&body) == InBatch::Last {
            (end, signposts, newest_turn) = (after, view.pending.len(), surveyor.newest_turn);
        }
    }
    view.pending.truncate(signposts);
    if scan.place().segment != end.segment {
        // A segment was begun, and no whole batch got into it.
        end = LogPosition { segment: end.seq, offset: 0, ..end };
    }
    if let Some(durable) = durable {
        let len = segment::len(dir, durable.segment).map_err(|error| failure(&error))?;
        if end.seq < durable.seq || len < durable.offset {
            return Err(lost(dir, end.seq.min(durable.seq - 1)));
        }
    }
    Ok(Found { view, end, durable, newest_turn })
}

/// The entries in `(after, until]`, of a log whose last entry is `last`.
pub(super) fn read(dir: &Path, view: &View, last: u64, wanted: Wanted) -> Result<Vec<LogEntry>, StoreError> {
    let until = wanted.until.min(last);
    let mut entries = Vec::new();
    if wanted.after >= until || wanted.limit == 0 {
        return Ok(entries);
    }
    let first = wanted.after + 1;
    let mut scan = Scan::new(dir, view.place_before(first)?);
    while scan.place().seq <= until && entries.len() < wanted.limit {
        let seq = scan.place().seq;
        let body = scan.next()?.ok_or_else(|| lost(dir, seq))?;
        if seq >= first {
            entries.push(record::decode(&body)?);
        }
    }
    Ok(entries)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub after: u64,
    pub until: u64,
    pub limit: usize,
}

fn lost(dir: &Path, seq: u64) -> StoreError {
    StoreError::Damaged(format!(
        "entry {seq} in `{}` was stored and cannot be read any more; restore the folder from a backup or delete the session",
        dir.display()
    ))
}

fn segments_after(dir: &Path, first: u64) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failure(&error)),
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let paths: Vec<_> = paths.collect::<Result<_, _>>().map_err(|error| failure(&error))?;
    Ok(paths.into_iter().filter(|path| segment::first_of(path).is_some_and(|number| number > first)).collect())
}

/// Checks every record in `[from, to)`.
pub(super) fn verify(dir: &Path, from: LogPosition, to: LogPosition) -> Result<(), StoreError> {
    let mut scan = Scan::new(dir, from);
    while scan.place().seq < to.seq {
        let seq = scan.place().seq;
        scan.next()?.ok_or_else(|| lost(dir, seq))?;
    }
    Ok(())
}

/// The segments from `from` to `to`, the last cut at `to`. It is missing where nothing was written to it yet.
pub(super) fn open_segments(
    dir: &Path,
    from: LogPosition,
    to: LogPosition,
    files: &dyn Files,
) -> Result<Vec<Arc<Segment>>, StoreError> {
    let mut numbers = segments_after(dir, from.segment.saturating_sub(1))?;
    numbers.sort();
    let mut segments = Vec::new();
    for path in numbers {
        let Some(first) = segment::first_of(&path) else { continue };
        let file = private_file().open(&path).map_err(|error| failure(&error))?;
        if first == to.segment {
            cut(&path, &file, to.offset, files)?;
        }
        segments.push(Arc::new(Segment::new(first, file)));
    }
    Ok(segments)
}

fn cut(path: &Path, file: &File, len: u64, files: &dyn Files) -> Result<(), StoreError> {
    let found = file.metadata().map_err(|error| failure(&error))?.len();
    if found > len {
        tracing::warn!(segment = %path.display(), bytes = found - len, "a torn end was cut off a log");
        files.truncate(file, len).map_err(|error| failure(&error))?;
    }
    Ok(())
}
