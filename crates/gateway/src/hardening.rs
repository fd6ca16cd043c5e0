//! What the whole process does before it touches a secret or a file.

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Gives back the umask of whoever started us: what agents make in that person's folders follows it.
pub fn apply() -> u32 {
    // Whatever is created without a mode of its own is ours alone.
    let before = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    quiet_panics();
    if let Err(error) = gembridge_process::startup::protect_process() {
        crate::terminal::write_stderr(&format!(
            "gembridge: this process is less protected than it should be: {error}\n"
        ));
    }
    before.as_raw_mode()
}

/// As many open files as the system lets us have: the first limit is meant for programs that wait with `select`.
pub fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
    {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

/// A panic's message may hold a prompt or a key; its place is enough to find the mistake.
fn quiet_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        crate::terminal::write_stderr(&format!("gembridge: our own mistake at {place}; please report it\n"));
    }));
}
