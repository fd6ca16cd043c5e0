//! What the whole process does before it touches a secret or a file.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::fs::Mode;

/// A write beyond `ulimit -f` raises this signal, which would end the program; caught, the write fails instead.
const SIGXFSZ: i32 = 25;

pub fn apply() {
    // Whatever is created without a mode of its own is ours alone.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    keep_memory_private();
    quiet_panics();
    // Only caught, never read: a caught signal is back to its default in every child, an ignored one would not be.
    if let Err(error) = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))) {
        tracing::debug!(%error, "SIGXFSZ keeps its default");
    }
}

/// No core dumps and no debugger of another process of the same user: keys are in this memory.
#[cfg(target_os = "linux")]
fn keep_memory_private() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::debug!(%error, "the process stays dumpable");
    }
}

#[cfg(not(target_os = "linux"))]
fn keep_memory_private() {}

/// A panic's message may hold a prompt or a key; its place is enough to find the mistake.
fn quiet_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        crate::terminal::write_stderr(&format!("gembridge: our own mistake at {place}; please report it\n"));
    }));
}
