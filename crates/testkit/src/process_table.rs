//! Eyes on `/proc`: who is alive, who is a zombie, what a process holds.

use std::{
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

/// The living processes (zombies are not alive) that carry a tag in their arguments or environment, without the caller.
pub fn processes_with_tag(tag: &str) -> Vec<u32> {
    let own = std::process::id();
    all_processes().filter(|pid| *pid != own && is_alive(*pid) && carries(*pid, tag)).collect()
}

/// Waits until no living process carries the tag; gives those that are left after the deadline.
pub fn wait_until_gone(tag: &str, deadline: Duration) -> Vec<u32> {
    let deadline = Instant::now() + deadline;
    loop {
        let left = processes_with_tag(tag);
        if left.is_empty() || Instant::now() >= deadline {
            return left;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The dead children that a process has not reaped.
pub fn zombies_of(parent: u32) -> Vec<u32> {
    let of_parent = |pid: &u32| stat(*pid).is_some_and(|stat| stat.state == 'Z' && stat.parent == parent);
    all_processes().filter(of_parent).collect()
}

pub fn children_of(parent: u32) -> Vec<u32> {
    all_processes().filter(|pid| stat(*pid).is_some_and(|stat| stat.parent == parent)).collect()
}

/// The session that a process is in; `Some(0)` when its leader stands outside of this process namespace.
pub fn session_of(pid: u32) -> Option<u32> {
    stat(pid).map(|stat| stat.session)
}

/// Exists and is no zombie.
pub fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// The number of open descriptors; 0 when the process is gone.
pub fn open_fds(pid: u32) -> usize {
    fs::read_dir(folder(pid).join("fd")).map_or(0, Iterator::count)
}

pub fn threads(pid: u32) -> usize {
    fs::read_dir(folder(pid).join("task")).map_or(0, Iterator::count)
}

/// Resident memory; 0 when the process is gone.
pub fn rss_kb(pid: u32) -> u64 {
    field(&folder(pid).join("status"), "VmRSS:")
}

/// The most memory the process ever had resident.
pub fn peak_rss_kb(pid: u32) -> u64 {
    field(&folder(pid).join("status"), "VmHWM:")
}

/// Memory with shared pages counted by share; 0 when the process is gone.
pub fn pss_kb(pid: u32) -> u64 {
    field(&folder(pid).join("smaps_rollup"), "Pss:")
}

struct Stat {
    state: char,
    parent: u32,
    session: u32,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(folder(pid).join("stat")).ok()?;
    // The name stands in parentheses and may hold any character, so what counts is behind the last one.
    let (_, rest) = text.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    let (state, parent, _group) = (words.next()?, words.next()?, words.next()?);
    Some(Stat { state: state.chars().next()?, parent: parent.parse().ok()?, session: words.next()?.parse().ok()? })
}

fn carries(pid: u32, tag: &str) -> bool {
    ["cmdline", "environ"].iter().any(|file| {
        fs::read(folder(pid).join(file))
            .is_ok_and(|bytes| bytes.windows(tag.len()).any(|window| window == tag.as_bytes()))
    })
}

fn field(path: &PathBuf, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or_default()
}

fn all_processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn folder(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}
