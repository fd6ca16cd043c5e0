//! The journal of all sessions: whatever happens is appended here first, at the price of a copy, and moved into the
//! database later, a whole segment at a time.
//!
//! A segment is `current` while it is filled, `sealed` until the database has everything in it, and then spare. Frames
//! are copied under one lock, so a process that is killed leaves a journal that is whole up to some frame.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gembridge_core::store::StoreError;

use super::DiskOptions;
use super::files::{Files, failure};
use super::frame::{self, TERMINATOR};
use super::segment::{self, HEADER, Left, Medium, Segment, Spare};

/// How many segments may wait for the database. Beyond it writers wait, as they would for a disk that is behind.
const MOST_SEALED: usize = 128;
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// How many files are kept for later. More are given back to the disk.
const MOST_SPARE: usize = 1;
/// A disk that has no room for a whole segment may have room for a smaller one.
const SMALLEST: u64 = 64 << 10;
/// Kept free at the end of a segment for deletions: they are what makes room on a disk that is full.
const FOR_DELETIONS: u64 = 4 << 10;

pub(super) struct Journal {
    folder: PathBuf,
    files: Arc<dyn Files>,
    options: DiskOptions,
    state: Mutex<State>,
    /// Something was sealed, or the end is near: for the archiver.
    work: Condvar,
    /// A segment left, or could not.
    archived: Condvar,
}

struct State {
    current: Option<Current>,
    /// Oldest first.
    sealed: VecDeque<Arc<Segment>>,
    spare: Vec<Spare>,
    /// In the database, and still read by somebody.
    read_on: Vec<Arc<Segment>>,
    /// Those with frames that a power cut would take.
    unsynced: Vec<Arc<Segment>>,
    /// Of the segment that was begun last.
    number: u64,
    /// Of the file that was made last.
    slot: u64,
    /// How many frames there were, and how many of them survive a power cut.
    appended: u64,
    synced: u64,
    /// Why the database does not take what is sealed.
    stuck: Option<StoreError>,
    /// How many times a segment was moved into the database, or could not be.
    attempts: u64,
    is_closing: bool,
}

struct Current {
    segment: Arc<Segment>,
    medium: Medium,
    offset: u64,
    is_unsynced: bool,
}

/// What a frame may take of a segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Usual,
    Reserved,
}

impl Journal {
    /// Goes on in `folder`; what was left there comes back for [`Journal::reuse`] after it was read.
    pub fn open(
        folder: PathBuf,
        options: DiskOptions,
        files: Arc<dyn Files>,
    ) -> Result<(Self, Vec<Segment>), StoreError> {
        let (mut left, mut spare, mut slot) = (Vec::new(), Vec::new(), 0);
        for entry in fs::read_dir(&folder).map_err(|error| failure(&error))? {
            let path = entry.map_err(|error| failure(&error))?.path();
            let Some(found) = segment::slot_of(&path) else { continue };
            slot = slot.max(found);
            match Left::open(path)? {
                Left::Segment(segment) => left.push(segment),
                Left::Spare(file) => spare.push(file),
            }
        }
        left.sort_by_key(|segment| segment.number);
        let state = State {
            current: None,
            sealed: VecDeque::new(),
            spare: Vec::new(),
            read_on: Vec::new(),
            unsynced: Vec::new(),
            number: left.last().map_or(0, |segment| segment.number),
            slot,
            appended: 0,
            synced: 0,
            stuck: None,
            attempts: 0,
            is_closing: false,
        };
        let (work, archived) = (Condvar::new(), Condvar::new());
        let journal = Self { folder, files, options, state: Mutex::new(state), work, archived };
        let mut state = journal.lock();
        for file in spare {
            state.keep(file, options.segment_bytes);
        }
        drop(state);
        Ok((journal, left))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No step between lock and unlock can panic half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on after segment `number`, whatever the files say.
    pub fn begin_after(&self, number: u64) {
        let mut state = self.lock();
        state.number = state.number.max(number);
    }

    /// Takes the file of a segment whose frames are all in the database.
    pub fn reuse(&self, segment: Segment) {
        self.lock().keep(segment.into_spare(), self.options.segment_bytes);
    }

    /// Appends a frame that [`frame::finish`] ended. When it returns, the frame survives the end of this process; `kept`
    /// has run by then, before anybody could move the frame. Gives the number of the frame.
    pub fn append(
        &self,
        frame: &mut [u8],
        room: Room,
        kept: impl FnOnce(&Arc<Segment>, u64),
    ) -> Result<u64, StoreError> {
        let mut state = self.lock();
        let reserved = if room == Room::Usual { FOR_DELETIONS.min(self.options.segment_bytes / 16) } else { 0 };
        let has_room = |current: &Current| current.offset + frame.len() as u64 + reserved <= current.segment.capacity;
        if !state.current.as_ref().is_some_and(has_room) {
            state = self.begin_segment(state, frame.len() as u64 + reserved)?;
        }
        let State { current: Some(current), unsynced, appended, .. } = &mut *state else {
            return Err(StoreError::Io("the journal has no segment".to_owned()));
        };
        frame::salt(frame, current.segment.salt);
        let written = self.files.write(&current.segment.file, &mut current.medium, frame, current.offset);
        written.map_err(|error| failure(&error))?;
        let offset = current.offset;
        current.offset += (frame.len() - TERMINATOR.len()) as u64;
        current.segment.end.store(current.offset, Ordering::Release);
        if !current.is_unsynced {
            current.is_unsynced = true;
            unsynced.push(Arc::clone(&current.segment));
        }
        *appended += 1;
        kept(&current.segment, offset);
        Ok(*appended)
    }

    /// Seals the current segment and begins one with room for `bytes`.
    fn begin_segment<'s>(
        &'s self,
        state: MutexGuard<'s, State>,
        bytes: u64,
    ) -> Result<MutexGuard<'s, State>, StoreError> {
        let is_full = |state: &State| state.sealed.len() >= MOST_SEALED;
        // Nobody waits for a database that takes nothing.
        let is_behind = |state: &mut State| is_full(state) && state.stuck.is_none() && !state.is_closing;
        let waited = self.archived.wait_timeout_while(state, LONGEST_WAIT, is_behind);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if is_full(&state) {
            let behind = || StoreError::Io("the database of the sessions is behind".to_owned());
            return Err(state.stuck.clone().unwrap_or_else(behind));
        }
        let needed = HEADER + bytes;
        let size = self.options.segment_bytes.max(needed);
        let spare = match state.spare.iter().position(|spare| spare.capacity >= size) {
            Some(at) => state.spare.swap_remove(at),
            None => self.allocate(&mut state, size, needed).map_err(|error| failure(&error))?,
        };
        let number = state.number + 1;
        let (salt, medium) = match spare.prepare(number, self.options.may_map, &*self.files) {
            Ok(prepared) => prepared,
            Err(error) => {
                state.keep(spare, self.options.segment_bytes);
                return Err(failure(&error));
            }
        };
        state.number = number;
        let segment = Arc::new(spare.into_segment(number, salt));
        self.seal(&mut state);
        state.current = Some(Current { segment, medium, offset: HEADER, is_unsynced: false });
        Ok(state)
    }

    fn allocate(&self, state: &mut State, size: u64, needed: u64) -> io::Result<Spare> {
        let mut capacity = size;
        loop {
            state.slot += 1;
            let path = segment::path(&self.folder, state.slot);
            match Spare::allocate(path, capacity, &*self.files) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::FileTooLarge)
                        && capacity > needed.max(SMALLEST) =>
                {
                    capacity = (capacity / 4).max(needed).max(SMALLEST);
                }
                allocated => return allocated,
            }
        }
    }

    fn seal(&self, state: &mut State) {
        if let Some(current) = state.current.take() {
            state.sealed.push_back(current.segment);
            self.work.notify_one();
        }
    }

    /// Resolves, by blocking, when everything that was appended so far is in the database, or could not get there.
    pub fn archive_now(&self) -> Result<(), StoreError> {
        let mut state = self.lock();
        if state.current.as_ref().is_some_and(|current| current.offset > HEADER) {
            self.seal(&mut state);
        }
        let last = state.sealed.back().map_or(0, |segment| segment.number);
        let before = state.attempts;
        let is_waiting = |state: &mut State| {
            let is_there = state.sealed.front().is_some_and(|segment| segment.number <= last);
            is_there && !state.is_closing && (state.stuck.is_none() || state.attempts == before)
        };
        self.work.notify_one();
        let state = self.archived.wait_while(state, is_waiting).unwrap_or_else(PoisonError::into_inner);
        match &state.stuck {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Bytes that are not in the database yet, about.
    pub fn pending_bytes(&self) -> u64 {
        let state = self.lock();
        let sealed: u64 = state.sealed.iter().map(|segment| segment.end.load(Ordering::Relaxed)).sum();
        sealed + state.current.as_ref().map_or(0, |current| current.offset - HEADER)
    }

    /// The oldest sealed segment, as soon as there is one; `None` when no more will come. For the archiver.
    pub fn next_sealed(&self) -> Option<Arc<Segment>> {
        let mut state = self.lock();
        loop {
            if let Some(segment) = state.sealed.front() {
                return Some(Arc::clone(segment));
            }
            if state.is_closing {
                if state.current.as_ref().is_some_and(|current| current.offset > HEADER) {
                    self.seal(&mut state);
                    continue;
                }
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The database has everything of `segment`, which must be the oldest that is sealed.
    pub fn leave(&self, segment: Arc<Segment>) {
        let mut state = self.lock();
        state.sealed.pop_front();
        // What is in the database has been synced there.
        state.unsynced.retain(|other| !Arc::ptr_eq(other, &segment));
        state.stuck = None;
        state.attempts += 1;
        state.read_on.push(segment);
        for segment in std::mem::take(&mut state.read_on) {
            match Arc::try_unwrap(segment) {
                Ok(segment) => state.keep(segment.into_spare(), self.options.segment_bytes),
                Err(segment) => state.read_on.push(segment),
            }
        }
        self.archived.notify_all();
    }

    /// The database did not take the oldest segment. Waits a while; whether to try again.
    pub fn stuck(&self, error: StoreError, pause: Duration) -> bool {
        let mut state = self.lock();
        state.stuck = Some(error);
        state.attempts += 1;
        self.archived.notify_all();
        if state.is_closing {
            return false;
        }
        let waited = self.work.wait_timeout_while(state, pause, |state| !state.is_closing);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        true
    }

    /// Lets the archiver finish and end.
    pub fn close(&self) {
        self.lock().is_closing = true;
        self.work.notify_all();
        self.archived.notify_all();
    }

    /// The number of the newest frame.
    pub fn appended(&self) -> u64 {
        self.lock().appended
    }

    pub fn is_synced(&self, frame: u64) -> bool {
        self.lock().synced >= frame
    }

    /// Returns when everything that was appended before survives a power cut. Called by the syncer only.
    pub fn sync(&self) -> Result<(), StoreError> {
        let (segments, target) = {
            let mut state = self.lock();
            if let Some(current) = &mut state.current {
                current.is_unsynced = false;
            }
            (std::mem::take(&mut state.unsynced), state.appended)
        };
        let synced = segments.iter().try_for_each(|segment| self.sync_segment(segment));
        let mut state = self.lock();
        if let Err(error) = synced {
            for segment in segments {
                segment.is_suspect.store(true, Ordering::Relaxed);
                if !state.unsynced.iter().any(|other| Arc::ptr_eq(other, &segment)) {
                    state.unsynced.push(segment);
                }
            }
            state.unsynced.sort_by_key(|segment| segment.number);
            return Err(error);
        }
        state.synced = state.synced.max(target);
        Ok(())
    }

    fn sync_segment(&self, segment: &Segment) -> Result<(), StoreError> {
        if segment.is_suspect.load(Ordering::Relaxed) {
            segment.write_again(&*self.files)?;
        }
        self.files.sync(&segment.file).map_err(|error| failure(&error))?;
        segment.is_suspect.store(false, Ordering::Relaxed);
        Ok(())
    }
}

impl State {
    /// Keeps a file for later, if it is of the usual size and few are kept.
    fn keep(&mut self, file: Spare, usual: u64) {
        if self.spare.len() < MOST_SPARE && file.capacity == usual {
            self.spare.push(file);
        } else if let Err(error) = fs::remove_file(&file.path) {
            tracing::warn!(file = %file.path.display(), %error, "a file of the journal could not be removed");
        }
    }
}
