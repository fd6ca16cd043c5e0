//! Notices changes of the key file, so that no request has to look.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use super::FileKeys;

/// How often the file is looked at all the same: some file systems tell nothing of what others write.
const LOOK: Duration = Duration::from_secs(1);

/// Begins to watch, as long as `keys` are used. On an error requests look for themselves, as before.
pub fn start(keys: &Arc<FileKeys>) -> io::Result<()> {
    let folder = keys.path.parent().unwrap_or(&keys.path);
    let changes = watch(folder)?;
    // What changed before the watch began.
    keys.refresh();
    let watched = Arc::downgrade(keys);
    thread::Builder::new().name("keys".to_owned()).spawn(move || follow(&watched, &changes))?;
    keys.set_watched(true);
    Ok(())
}

fn watch(folder: &Path) -> io::Result<OwnedFd> {
    let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let flags = WatchFlags::ATTRIB
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MODIFY
        | WatchFlags::MOVE
        | WatchFlags::MOVE_SELF;
    inotify::add_watch(&changes, folder, flags)?;
    Ok(changes)
}

fn follow(keys: &Weak<FileKeys>, changes: &OwnedFd) {
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4 << 10];
    loop {
        let wait = Timespec { tv_sec: LOOK.as_secs().cast_signed(), tv_nsec: 0 };
        let waited = poll(&mut [PollFd::new(changes, PollFlags::IN)], Some(&wait));
        let Some(keys) = keys.upgrade() else { return };
        let mut is_gone = waited.is_err_and(|error| error != rustix::io::Errno::INTR);
        let mut events = inotify::Reader::new(changes, &mut buffer);
        while let Ok(event) = events.next() {
            let gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED | ReadFlags::UNMOUNT;
            is_gone |= event.events().intersects(gone);
        }
        keys.refresh();
        if is_gone {
            tracing::warn!("the folder of the keys went away; every request looks at the file from now on");
            keys.set_watched(false);
            return;
        }
    }
}
