//! What `/proc` tells about processes: who descends from whom, who is who, and how much memory a tree holds.

use std::time::Duration;
use std::{fs, io};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// One process as `/proc/<pid>/stat` shows it. A pid alone is reused; a pid with its start time is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: Pid,
    pub(crate) parent: i32,
    pub(crate) kind: Kind,
    pub(crate) start_time: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Program,
    /// Ended, not collected.
    Zombie,
    /// A thread of the kernel: no program, no environment.
    Kernel,
}

/// `PF_KTHREAD` among the flags of a process.
const KERNEL_THREAD: u32 = 0x0020_0000;

pub(crate) fn stat(pid: Pid) -> io::Result<Stat> {
    let text = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero()))?;
    parse_stat(pid, &text).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// The name in the second field is chosen by the process and may hold anything, so fields are counted from its last `)`.
fn parse_stat(pid: Pid, text: &[u8]) -> Option<Stat> {
    let after_name = memchr::memrchr(b')', text)? + 1;
    let mut fields = std::str::from_utf8(&text[after_name..]).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let flags: u32 = fields.nth(4)?.parse().ok()?;
    let start_time = fields.nth(12)?.parse().ok()?;
    let kind = match state {
        "Z" | "X" => Kind::Zombie,
        _ if flags & KERNEL_THREAD != 0 => Kind::Kernel,
        _ => Kind::Program,
    };
    Some(Stat { pid, parent, kind, start_time })
}

pub(crate) fn all_pids() -> io::Result<Vec<Pid>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        pids.extend(name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw));
    }
    Ok(pids)
}

/// Every living descendant of `root`, parents before their children, `root` itself left out.
pub(crate) fn descendants(root: Pid) -> io::Result<Vec<Stat>> {
    let everyone: Vec<Stat> = all_pids()?.into_iter().filter_map(|pid| stat(pid).ok()).collect();
    let mut found = Vec::new();
    let mut generation = vec![root.as_raw_nonzero().get()];
    while !generation.is_empty() {
        let next: Vec<Stat> = everyone.iter().filter(|process| generation.contains(&process.parent)).copied().collect();
        generation = next.iter().map(|process| process.pid.as_raw_nonzero().get()).collect();
        found.extend(next.into_iter().filter(|process| process.kind != Kind::Zombie));
    }
    Ok(found)
}

/// Signals exactly the process that `seen` describes; one that is gone meanwhile is no error.
pub(crate) fn signal(seen: &Stat, signal: Signal) -> io::Result<()> {
    let sent = match pidfd_open(seen.pid, PidfdFlags::empty()) {
        Ok(pidfd) => {
            // The descriptor pins one process; only then is it worth asking whether it is the one that was seen.
            if stat(seen.pid).is_ok_and(|now| now.start_time == seen.start_time) {
                pidfd_send_signal(pidfd, signal)
            } else {
                Ok(())
            }
        }
        Err(Errno::SRCH) => Ok(()),
        // Kernels and seccomp filters without pidfd: the plain call is all there is.
        Err(_) => kill_process(seen.pid, signal),
    };
    match sent {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Memory of a tree of processes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TreeMemory {
    /// Shared pages counted in proportion. Equals `rss` where the kernel does not tell.
    pub pss: u64,
    /// Shared pages counted once per process.
    pub rss: u64,
    /// Processes counted, the guard included.
    pub processes: usize,
}

pub(crate) fn tree_memory(root: Pid) -> io::Result<TreeMemory> {
    let mut total = TreeMemory::default();
    let pids = descendants(root)?.into_iter().map(|process| process.pid);
    for pid in std::iter::once(root).chain(pids) {
        let pid = pid.as_raw_nonzero();
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
        let (rss, pss) = match read("smaps_rollup") {
            Some(text) => (kilobytes(&text, "Rss:"), kilobytes(&text, "Pss:")),
            // Not ours to look into: the resident size is public.
            None => (read("status").and_then(|text| kilobytes(&text, "VmRSS:")), None),
        };
        // A process that ended meanwhile holds nothing.
        if let Some(rss) = rss {
            total.rss += rss;
            total.pss += pss.unwrap_or(rss);
            total.processes += 1;
        }
    }
    Ok(total)
}

/// How long a process has been running and what it holds, for a person to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub uptime: Duration,
    /// Resident bytes of the process and of all below it, shared pages counted once per process.
    pub resident: u64,
}

/// `None` for a process that is gone.
pub fn usage(pid: u32) -> Option<Usage> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    let started = stat(pid).ok()?.start_time;
    let now = fs::read_to_string("/proc/uptime").ok()?;
    let now = Duration::try_from_secs_f64(now.split_ascii_whitespace().next()?.parse().ok()?).ok()?;
    let started = Duration::from_millis(started * 1000 / rustix::param::clock_ticks_per_second().max(1));
    Some(Usage { uptime: now.saturating_sub(started), resident: resident(pid.as_raw_nonzero().get(), 0) })
}

/// How deep a tree of processes is looked at.
const DEPTH: usize = 8;

/// By way of the kernel's list of children: cheaper than all of `/proc`, and good enough for a number that changes anyway.
fn resident(pid: i32, depth: usize) -> u64 {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let own = kilobytes(&read("status"), "VmRSS:").unwrap_or(0);
    if depth == DEPTH {
        return own;
    }
    let children = read(&format!("task/{pid}/children"));
    let below = children.split_ascii_whitespace().filter_map(|child| child.parse().ok());
    own + below.map(|child| resident(child, depth + 1)).sum::<u64>()
}

fn kilobytes(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let text = b"7 (a) Z (b) S 3 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1";
        let pid = Pid::from_raw(7).unwrap();
        let expected = Stat { pid, parent: 3, kind: Kind::Program, start_time: 4711 };
        assert_eq!(parse_stat(pid, text), Some(expected));
    }

    #[test]
    fn this_process_is_seen_with_memory() {
        let me = rustix::process::getpid();
        assert_eq!(stat(me).unwrap().kind, Kind::Program);
        let memory = tree_memory(me).unwrap();
        assert!(memory.rss > 0 && memory.pss > 0 && memory.processes >= 1, "{memory:?}");
        let usage = usage(std::process::id()).unwrap();
        assert!(usage.resident > 0 && usage.uptime < Duration::from_hours(24), "{usage:?}");
        assert_eq!(super::usage(u32::MAX), None);
    }
}
