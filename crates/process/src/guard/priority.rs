//! How much of a busy processor the command gets: its nice value, and that of its session.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::time::Duration;

use super::complain;
use crate::spawn::Priority;

/// The kernel takes a change of a session's weight ten times a second, from all users together.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(50);

/// Called by the launch stage once it leads a session of its own. A command that keeps its priority is no reason not to
/// start it.
pub(super) fn apply(priority: Priority) {
    let Priority::Lowered(steps) = priority else { return };
    if let Err(error) = rustix::process::nice(i32::from(steps)) {
        complain(&format_args!("cannot lower the priority: {error}"));
    }
    if let Err(error) = lower_session(steps) {
        complain(&format_args!("cannot lower the priority of the session: {error}"));
    }
}

/// Where the kernel groups processes by session, the nice value counts only within a session, and the session has one of its
/// own.
fn lower_session(steps: u8) -> io::Result<()> {
    for attempt in 1.. {
        let written =
            OpenOptions::new().write(true).open("/proc/self/autogroup").and_then(|mut file| write!(file, "{steps}"));
        match written {
            // The kernel does not group, or not this process.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && attempt < ATTEMPTS => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    unreachable!("the last attempt returns")
}
