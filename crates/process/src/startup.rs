//! What a long-lived owner of children does once, first thing in `main`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use signal_hook::consts::{SIGPIPE, SIGXFSZ};

/// Makes a full disk and a closed pipe errors instead of deaths, and hides this process's memory and environment from
/// other processes of the same user.
///
/// The signals get a handler that does nothing rather than `SIG_IGN`: `exec` resets handlers but keeps "ignored", so
/// children start with the default behaviour.
pub fn protect_process() -> io::Result<()> {
    for signal in [SIGXFSZ, SIGPIPE] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}
