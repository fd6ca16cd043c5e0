//! Everything below the guard: signal all of it, collect what ended.

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, wait};

use crate::procfs;

/// Asks every descendant to end. Stopped ones are woken so that they hear it.
pub(super) fn ask_to_end() -> io::Result<()> {
    signal_all(&[Signal::TERM, Signal::CONT])
}

/// Kills every descendant that is there now. What is being forked meanwhile is met by the next call.
pub(super) fn kill() -> io::Result<()> {
    signal_all(&[Signal::KILL])
}

fn signal_all(signals: &[Signal]) -> io::Result<()> {
    for process in procfs::descendants(getpid())? {
        for signal in signals {
            // One that may not be signalled must not shield the others; the guard's deadline ends the wait for it.
            if procfs::signal(&process, *signal).is_err() {
                break;
            }
        }
    }
    Ok(())
}

pub(super) enum Collected {
    /// A child, or an orphan that came to the subreaper, has ended.
    Ended(Pid, WaitStatus),
    /// All that is left is running.
    NothingYet,
    /// Nothing is left.
    NobodyLeft,
}

pub(super) fn collect_one() -> io::Result<Collected> {
    match wait(WaitOptions::NOHANG) {
        Ok(Some((pid, status))) => Ok(Collected::Ended(pid, status)),
        Ok(None) => Ok(Collected::NothingYet),
        Err(Errno::CHILD) => Ok(Collected::NobodyLeft),
        Err(error) => Err(error.into()),
    }
}
