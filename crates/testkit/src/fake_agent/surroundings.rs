//! What the process was given: environment, arguments, folder and open descriptors.

use std::{collections::BTreeMap, env, fs, sync::OnceLock};

use serde_json::{Value, json};

static DESCRIPTORS_AT_START: OnceLock<Vec<u32>> = OnceLock::new();

/// Called before anything is opened, so that our own files do not count.
pub fn note_descriptors() {
    DESCRIPTORS_AT_START.get_or_init(open_descriptors);
}

pub fn describe() -> Value {
    let variables: BTreeMap<String, String> = env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .collect();
    let argv: Vec<String> = env::args().collect();
    let descriptors = DESCRIPTORS_AT_START.get_or_init(open_descriptors);
    json!({"env": variables, "fds": descriptors, "cwd": env::current_dir().unwrap_or_default(), "argv": argv})
}

fn open_descriptors() -> Vec<u32> {
    let listing = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let mut open: Vec<u32> = listing
        // The listing itself is open too.
        .filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| !target.ends_with("fd")))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    open.sort_unstable();
    open
}
