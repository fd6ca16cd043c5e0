//! Tells whether anything in the folder of the key file changed, at a tenth of what a look at the file costs.

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::ioctl_fionread;

pub struct FolderWatch {
    events: OwnedFd,
}

/// Whether the folder is still watched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    Yes,
    /// It was moved, removed or unmounted.
    NoMore,
}

impl FolderWatch {
    /// `None` where changes of `file` would not be told: there is no such folder, the file is a link to elsewhere, or the
    /// system has no watch left.
    pub fn of(file: &Path) -> Option<Self> {
        if fs::symlink_metadata(file).is_ok_and(|found| found.is_symlink()) {
            return None;
        }
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let what = WatchFlags::ATTRIB
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MODIFY
            | WatchFlags::MOVE
            | WatchFlags::MOVE_SELF;
        inotify::add_watch(&events, file.parent()?, what).ok()?;
        Some(Self { events })
    }

    /// Whether there is anything to [`FolderWatch::take`]. The system notes a change before whoever made it goes on.
    pub fn has_events(&self) -> bool {
        ioctl_fionread(&self.events).map_or(true, |bytes| bytes > 0)
    }

    /// Forgets the changes so far.
    pub fn take(&self) -> Watched {
        let mut buffer = [MaybeUninit::uninit(); 4 << 10];
        let mut events = Reader::new(&self.events, &mut buffer);
        let gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED | ReadFlags::UNMOUNT;
        let mut watched = Watched::Yes;
        while let Ok(event) = events.next() {
            if event.events().intersects(gone) {
                watched = Watched::NoMore;
            }
        }
        watched
    }
}
