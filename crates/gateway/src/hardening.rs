//! What the whole process does before it touches a secret or a file.

use rustix::fs::Mode;

pub fn apply() {
    // Whatever is created without a mode of its own is ours alone.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    quiet_panics();
    if let Err(error) = gembridge_process::startup::protect_process() {
        crate::terminal::write_stderr(&format!(
            "gembridge: this process is less protected than it should be: {error}\n"
        ));
    }
}

/// A panic's message may hold a prompt or a key; its place is enough to find the mistake.
fn quiet_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        crate::terminal::write_stderr(&format!("gembridge: our own mistake at {place}; please report it\n"));
    }));
}
