//! The mark that every process of a run carries in its environment, and the sweep that ends what a dead run left.
//!
//! A tag names the owner so that its death can be read from `/proc`: pid namespace, pid and start time. No file has to
//! be kept, and a second owner that is alive is never touched.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::str::FromStr;
use std::time::Duration;

use rustix::process::{Pid, Signal, geteuid, getpid};

use crate::procfs::{self, Kind, Stat};

/// The variable that carries the tag.
pub const TAG_VARIABLE: &str = "GEMBRIDGE_RUN";

const SWEEP_ROUNDS: u32 = 50;
/// So many rounds wait for processes in the middle of an exec to show their environment.
const BLANK_ROUNDS: u32 = 5;

const ROUND_PAUSE: Duration = Duration::from_millis(10);

/// One owner of children: a process, told apart from every other that ever had its pid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTag {
    namespace: u64,
    pid: Pid,
    start_time: u64,
}

impl RunTag {
    /// The tag of this process.
    pub fn current() -> io::Result<Self> {
        let pid = getpid();
        Ok(Self { namespace: pid_namespace()?, pid, start_time: procfs::stat(pid)?.start_time })
    }

    fn is_alive(&self) -> bool {
        procfs::stat(self.pid).is_ok_and(|now| now.start_time == self.start_time && now.kind != Kind::Zombie)
    }
}

impl fmt::Display for RunTag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}-{}", self.namespace, self.pid.as_raw_nonzero(), self.start_time)
    }
}

/// Not a tag that this crate wrote.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the tag of a run; expected `<namespace>-<pid>-<start time>`")]
pub struct BadTag;

impl FromStr for RunTag {
    type Err = BadTag;

    fn from_str(text: &str) -> Result<Self, BadTag> {
        let mut parts = text.split('-');
        let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok()).ok_or(BadTag);
        let (namespace, pid, start_time) = (number()?, number()?, number()?);
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(BadTag)?;
        match parts.next() {
            None => Ok(Self { namespace, pid, start_time }),
            Some(_) => Err(BadTag),
        }
    }
}

/// The tag of one child: its run and its number within it. Found again in the environment of every descendant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChildTag {
    pub(crate) run: RunTag,
    pub(crate) number: u64,
}

impl fmt::Display for ChildTag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.run, self.number)
    }
}

impl FromStr for ChildTag {
    type Err = BadTag;

    fn from_str(text: &str) -> Result<Self, BadTag> {
        let (run, number) = text.split_once('.').ok_or(BadTag)?;
        Ok(Self { run: run.parse()?, number: number.parse().map_err(|_| BadTag)? })
    }
}

/// What a sweep found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Processes of dead runs that were killed.
    pub killed: usize,
    /// Processes of dead runs that were still there when the sweep gave up.
    pub left: usize,
}

/// Kills every process of this user that carries the tag of a run whose owner is dead.
///
/// Blocks for as long as the killed need to disappear, at most half a second. Call it once at start.
pub fn sweep() -> io::Result<Swept> {
    let namespace = pid_namespace()?;
    kill_tagged(|tag| tag.run.namespace == namespace && !tag.run.is_alive())
}

/// Kills what carries exactly this child's tag. The last net for when its guard was killed.
pub(crate) fn sweep_child(child: &ChildTag) -> io::Result<Swept> {
    kill_tagged(|tag| tag == child)
}

fn kill_tagged(doomed: impl Fn(&ChildTag) -> bool) -> io::Result<Swept> {
    let mut killed: Vec<Stat> = Vec::new();
    let mut found = look(&doomed)?;
    for round in 0..SWEEP_ROUNDS {
        let settled = found.blank == 0 || round >= BLANK_ROUNDS;
        if found.doomed.is_empty() && settled {
            break;
        }
        for process in &found.doomed {
            if let Err(error) = procfs::signal(process, Signal::KILL) {
                tracing::warn!(pid = process.pid.as_raw_nonzero(), %error, "cannot kill a leftover process");
            }
            if !killed.contains(process) {
                killed.push(*process);
            }
        }
        std::thread::sleep(ROUND_PAUSE);
        found = look(&doomed)?;
    }
    let left = found.doomed.len();
    Ok(Swept { killed: killed.len().saturating_sub(left), left })
}

struct Found {
    doomed: Vec<Stat>,
    /// Processes that show no environment: those few that have none, and those in the middle of an exec.
    blank: usize,
}

fn look(doomed: impl Fn(&ChildTag) -> bool) -> io::Result<Found> {
    let me = getpid();
    let user = geteuid().as_raw();
    let mut found = Found { doomed: Vec::new(), blank: 0 };
    for pid in procfs::all_pids()? {
        let path = format!("/proc/{}", pid.as_raw_nonzero());
        // A process that ends while it is looked at is not an error, it is gone.
        let ours = pid != me && fs::metadata(&path).is_ok_and(|meta| meta.uid() == user);
        let Ok(seen) = procfs::stat(pid) else { continue };
        if !ours || seen.kind != Kind::Program {
            continue;
        }
        let Ok(environment) = fs::read(format!("{path}/environ")) else { continue };
        if environment.is_empty() {
            found.blank += 1;
        } else if tag_in(&environment).is_some_and(|tag| doomed(&tag)) {
            // Whose child it is changes when its parent is killed; who it is does not.
            found.doomed.push(Stat { parent: 0, ..seen });
        }
    }
    Ok(found)
}

fn tag_in(environment: &[u8]) -> Option<ChildTag> {
    environment
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(TAG_VARIABLE.as_bytes())?.strip_prefix(b"="))
        .and_then(|value| std::str::from_utf8(value).ok()?.parse().ok())
}

/// Pids mean nothing in another namespace: a container's runs look dead from outside.
fn pid_namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/pid")?.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_survives_the_environment_and_tells_its_own_life() {
        let run = RunTag::current().unwrap();
        assert!(run.is_alive());
        let tag = ChildTag { run: run.clone(), number: 7 };
        let environment = format!("A=1\0{TAG_VARIABLE}={tag}\0B=2\0");
        assert_eq!(tag_in(environment.as_bytes()), Some(tag));
        let earlier = RunTag { start_time: run.start_time - 1, ..run };
        assert!(!earlier.is_alive(), "the same pid at another time is another process");
    }

    #[test]
    fn what_is_not_a_tag_is_refused() {
        for text in ["", "1-2", "1-2-3-4", "1-0-3", "a-b-c", "1-2-99999999999999999999999"] {
            assert_eq!(text.parse::<RunTag>(), Err(BadTag), "{text}");
        }
        assert_eq!(tag_in(b"GEMBRIDGE_RUNNER=1-2-3.4\0"), None);
    }
}
