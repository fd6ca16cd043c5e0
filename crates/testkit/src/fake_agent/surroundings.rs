//! What the process was given: environment, arguments, folder and open descriptors.

use std::{collections::BTreeMap, env, fs, path::Path, process::Command, sync::OnceLock};

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

/// What is in a file, or the names in a folder, as this process finds it.
pub fn open(path: &Path) -> String {
    let found = if path.is_dir() {
        fs::read_dir(path).map(|entries| {
            let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
            names.collect::<Vec<_>>().join(" ").into_bytes()
        })
    } else {
        fs::read(path)
    };
    let told = match &found {
        Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Err(_) => "refused".to_owned(),
    };
    format!("open {}: {told}\n", path.display())
}

pub fn shell(line: &str) -> String {
    match Command::new("/bin/sh").args(["-c", &format!("{{ {line}; }} 2>&1")]).output() {
        Ok(output) => format!("shell: {}\n", String::from_utf8_lossy(&output.stdout).trim_end()),
        Err(error) => format!("shell: {error}\n"),
    }
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
