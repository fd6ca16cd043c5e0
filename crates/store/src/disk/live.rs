//! A log that is open for writing: what its writer, its readers and the syncer share.

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gembridge_core::model::SessionId;
use gembridge_core::store::StoreError;

use super::files::{Files, failure, read_up_to, write_all_at};
use super::index::{self, ENTRY, Signpost, View};
use super::recover::{self, Found};
use super::segment::{LogPosition, Segment};

pub(super) struct Live {
    pub id: SessionId,
    pub dir: PathBuf,
    state: Mutex<State>,
}

/// What may still happen to the files of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Open,
    /// The writer is gone; another may have the files by now.
    Closed,
    Deleted,
}

struct State {
    access: Access,
    /// After the last entry that was acknowledged.
    end: LogPosition,
    /// Everything before it survives a power cut.
    durable: LogPosition,
    /// Set when a sync failed: the kernel may have dropped what was written before this place and will not say so
    /// again, so the next sync has to write it once more.
    suspect: Option<LogPosition>,
    /// The segments that hold anything after `durable`, oldest first.
    unsynced: Vec<Arc<Segment>>,
    index: Index,
}

struct Index {
    file: Option<Arc<File>>,
    entries: u64,
    newest_turn: u64,
    /// Signposts that wait until what they point to is durable.
    pending: Vec<Signpost>,
    last_written: Option<LogPosition>,
}

impl Live {
    pub fn new(id: SessionId, dir: PathBuf, found: Found, unsynced: Vec<Arc<Segment>>) -> Result<Self, StoreError> {
        let newest_turn = found.view.newest_turn()?;
        let index = Index {
            file: found.view.file,
            entries: found.view.entries,
            newest_turn,
            pending: found.view.pending,
            last_written: found.durable,
        };
        let state = State {
            access: Access::Open,
            end: found.end,
            durable: found.durable.unwrap_or(LogPosition::START),
            suspect: None,
            unsynced,
            index,
        };
        Ok(Self { id, dir, state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No step between lock and unlock can panic half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn access(&self) -> Access {
        self.lock().access
    }

    pub fn set_access(&self, access: Access) {
        self.lock().access = access;
    }

    pub fn end(&self) -> LogPosition {
        self.lock().end
    }

    /// How to find entries, and the number of the last.
    pub fn view(&self) -> (View, u64) {
        let state = self.lock();
        let view =
            View { file: state.index.file.clone(), entries: state.index.entries, pending: state.index.pending.clone() };
        (view, state.end.seq - 1)
    }

    pub fn began(&self, segment: Arc<Segment>) {
        self.lock().unsynced.push(segment);
    }

    /// Makes known what was written.
    pub fn advanced(&self, end: LogPosition, signposts: &mut Vec<Signpost>) {
        let mut state = self.lock();
        state.end = end;
        state.index.pending.append(signposts);
    }

    /// Returns when everything before `upto` survives a power cut. Called by the syncer only.
    pub fn make_durable(&self, upto: LogPosition, files: &dyn Files) -> Result<(), StoreError> {
        let (segments, durable, suspect) = {
            let state = self.lock();
            if state.access == Access::Deleted {
                return Err(StoreError::Unknown(self.id));
            }
            if upto <= state.durable && state.suspect.is_none() {
                return Ok(());
            }
            (state.unsynced.clone(), state.durable, state.suspect)
        };
        let synced = match suspect {
            Some(suspect) => self.write_again(&segments, durable, suspect, files),
            None => Ok(()),
        }
        .and_then(|()| self.sync_segments(&segments, files));

        let mut state = self.lock();
        if let Err(error) = synced {
            state.suspect = Some(state.end);
            return Err(error);
        }
        state.suspect = None;
        state.durable = state.durable.max(upto);
        state.unsynced.retain(|segment| segment.first >= upto.segment);
        if state.access == Access::Open {
            state.index.write(upto, &self.dir, files);
        }
        Ok(())
    }

    fn sync_segments(&self, segments: &[Arc<Segment>], files: &dyn Files) -> Result<(), StoreError> {
        for segment in segments {
            files.sync(&segment.file).map_err(|error| failure(&error))?;
        }
        if segments.iter().any(|segment| !segment.named.load(Ordering::Relaxed)) {
            files.sync_dir(&self.dir).map_err(|error| failure(&error))?;
            if let Some(parent) = self.dir.parent() {
                files.sync_dir(parent).map_err(|error| failure(&error))?;
            }
            for segment in segments {
                segment.named.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Makes every byte in `[from, to)` dirty again. What the kernel dropped already is gone, and is found out here.
    fn write_again(
        &self,
        segments: &[Arc<Segment>],
        from: LogPosition,
        to: LogPosition,
        files: &dyn Files,
    ) -> Result<(), StoreError> {
        recover::verify(&self.dir, from, to)?;
        for segment in segments.iter().filter(|segment| segment.first <= to.segment) {
            let start = if segment.first == from.segment { from.offset } else { 0 };
            let end = if segment.first == to.segment {
                to.offset
            } else {
                segment.file.metadata().map_err(|error| failure(&error))?.len()
            };
            let len = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
            let bytes = read_up_to(&segment.file, start, len).map_err(|error| failure(&error))?;
            if bytes.len() != len {
                return Err(StoreError::Damaged(format!("`{}` lost its end after a failed sync", self.dir.display())));
            }
            write_all_at(files, &segment.file, &bytes, start).map_err(|error| failure(&error))?;
        }
        Ok(())
    }
}

impl Index {
    /// Writes the signposts that became true. A failure costs nothing but a longer search: they stay pending.
    fn write(&mut self, durable: LogPosition, dir: &std::path::Path, files: &dyn Files) {
        let ripe = self.pending.partition_point(|post| post.place.seq < durable.seq);
        let mut posts: Vec<_> = self.pending[..ripe].to_vec();
        if self.last_written.is_none_or(|last| last < durable) {
            posts.push(Signpost { place: durable, turn: None });
        }
        if posts.is_empty() {
            return;
        }
        let mut bytes = Vec::with_capacity(posts.len() * ENTRY);
        let newest_turn = index::encode(&posts, self.entries, self.newest_turn, &mut bytes);
        let written = match &self.file {
            Some(file) => Ok(Arc::clone(file)),
            None => files.create(&index::path(dir)).map(Arc::new),
        }
        .and_then(|file| {
            self.file = Some(Arc::clone(&file));
            write_all_at(files, &file, &bytes, self.entries * ENTRY as u64)
        });
        if let Err(error) = written {
            tracing::warn!(log = %dir.display(), %error, "the index of a log could not be written");
            return;
        }
        self.entries += posts.len() as u64;
        self.newest_turn = newest_turn;
        self.last_written = Some(durable);
        self.pending.drain(..ripe);
    }
}
