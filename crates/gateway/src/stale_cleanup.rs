//! What runs that were killed left behind: processes and private folders. Cleared at the next start.

use crate::config::Folders;

/// What was found and cleared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    pub processes: usize,
    pub folders: usize,
    /// Processes that could not be ended.
    pub stubborn: usize,
}

/// Ends the processes and removes the folders of dead runs; those of living ones are not touched. What cannot be
/// cleared is a warning, and is tried again at the next start.
pub fn clear(folders: &Folders) -> Cleared {
    let mut cleared = Cleared::default();
    match gembridge_process::sweep() {
        Ok(swept) => (cleared.processes, cleared.stubborn) = (swept.killed, swept.left),
        Err(error) => tracing::warn!(%error, "cannot look for processes of dead runs"),
    }
    match gembridge_drivers::workspace::sweep_private_dirs(&folders.runs()) {
        Ok(removed) => cleared.folders = removed,
        Err(error) => {
            tracing::warn!(%error, folder = %folders.runs().display(), "cannot look for folders of dead runs");
        }
    }
    cleared
}
