//! The command line of the guard, written by the owner and read by the guard and its launch stage.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Pid;

use crate::sandbox::{Reads, Sandbox};
use crate::spawn::Priority;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) stage: Stage,
    /// Between SIGTERM and SIGKILL when the tree is ended.
    pub(crate) grace: Duration,
    pub(crate) cwd: Option<PathBuf>,
    /// For the command; the guard's own, which leaves nothing to others, if not given.
    pub(crate) umask: Option<u32>,
    pub(crate) priority: Priority,
    pub(crate) fence: Option<Sandbox>,
    /// The program and its arguments; never empty.
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Watch over the tree.
    Guard,
    /// Turn into the command, as a child of the guard with this pid.
    Launch { guard: Pid },
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UsageError {
    #[error(
        "no command; usage: `guard [--grace-ms N] [--cwd DIR] [--umask N] [--nice N] [--fence] [--write DIR]… [--confine] \
         [--read PATH]… -- COMMAND ARGS…`"
    )]
    NoCommand,
    #[error("unknown option `{0}`; options end with `--`")]
    Unknown(String),
    #[error("option `{option}` needs {needs}")]
    BadValue { option: &'static str, needs: &'static str },
}

impl Options {
    pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Self, UsageError> {
        let mut args = args;
        let mut options = Self {
            stage: Stage::Guard,
            grace: DEFAULT_GRACE,
            cwd: None,
            umask: None,
            priority: Priority::OfTheOwner,
            fence: None,
            command: Vec::new(),
        };
        while let Some(option) = args.next() {
            match option.to_str() {
                Some("--") => break,
                Some("--grace-ms") => {
                    let milliseconds = number(args.next().as_deref(), "--grace-ms", "a number of milliseconds")?;
                    options.grace = Duration::from_millis(milliseconds);
                }
                Some("--launched-by") => {
                    let pid: i32 = number(args.next().as_deref(), "--launched-by", "a process id")?;
                    let needs = UsageError::BadValue { option: "--launched-by", needs: "a process id" };
                    options.stage = Stage::Launch { guard: Pid::from_raw(pid).ok_or(needs)? };
                }
                Some("--cwd") => options.cwd = Some(folder(args.next(), "--cwd")?),
                Some("--umask") => options.umask = Some(number(args.next().as_deref(), "--umask", "a number")?),
                Some("--nice") => {
                    let steps = number(args.next().as_deref(), "--nice", "a number of steps")?;
                    options.priority = Priority::lowered_by(steps);
                }
                Some("--fence") => _ = options.fence.get_or_insert_default(),
                Some("--write") => {
                    options.fence.get_or_insert_default().writable.push(folder(args.next(), "--write")?);
                }
                Some("--confine") => _ = options.readable(),
                Some("--read") => {
                    let path = args.next().ok_or(UsageError::BadValue { option: "--read", needs: "a path" })?;
                    options.readable().push(path.into());
                }
                _ => return Err(UsageError::Unknown(option.to_string_lossy().into_owned())),
            }
        }
        options.command = args.collect();
        if options.command.is_empty() { Err(UsageError::NoCommand) } else { Ok(options) }
    }

    /// The paths of a fence that governs reading, which it does from here on.
    fn readable(&mut self) -> &mut Vec<PathBuf> {
        let reads = &mut self.fence.get_or_insert_default().reads;
        if *reads == Reads::Anything {
            *reads = Reads::Only(Vec::new());
        }
        match reads {
            Reads::Only(paths) => paths,
            Reads::Anything => unreachable!("it was replaced above"),
        }
    }

    pub(crate) fn to_args(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec!["--grace-ms".into(), self.grace.as_millis().to_string().into()];
        if let Stage::Launch { guard } = self.stage {
            args.extend(["--launched-by".into(), guard.as_raw_nonzero().to_string().into()]);
        }
        if let Some(cwd) = &self.cwd {
            args.extend(["--cwd".into(), cwd.into()]);
        }
        if let Some(umask) = self.umask {
            args.extend(["--umask".into(), umask.to_string().into()]);
        }
        if let Priority::Lowered(steps) = self.priority {
            args.extend(["--nice".into(), steps.to_string().into()]);
        }
        if let Some(fence) = &self.fence {
            args.push("--fence".into());
            args.extend(fence.writable.iter().flat_map(|folder| ["--write".into(), folder.into()]));
            if let Reads::Only(paths) = &fence.reads {
                args.push("--confine".into());
                args.extend(paths.iter().flat_map(|path| ["--read".into(), path.into()]));
            }
        }
        args.push("--".into());
        args.extend(self.command.iter().cloned());
        args
    }
}

pub(crate) const DEFAULT_GRACE: Duration = Duration::from_millis(500);

fn number<N: std::str::FromStr>(
    value: Option<&OsStr>,
    option: &'static str,
    needs: &'static str,
) -> Result<N, UsageError> {
    let text = value.and_then(OsStr::to_str);
    text.and_then(|text| text.parse().ok()).ok_or(UsageError::BadValue { option, needs })
}

fn folder(value: Option<OsString>, option: &'static str) -> Result<PathBuf, UsageError> {
    value.map(PathBuf::from).ok_or(UsageError::BadValue { option, needs: "a folder" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_owner_writes_the_guard_reads() {
        let full = Options {
            stage: Stage::Launch { guard: Pid::from_raw(7).unwrap() },
            grace: Duration::from_millis(20),
            cwd: Some("/w --cwd".into()),
            umask: Some(0o022),
            priority: Priority::Lowered(5),
            fence: Some(Sandbox {
                reads: Reads::Only(vec!["/r".into(), "--write".into()]),
                writable: vec!["/a".into(), "--".into()],
            }),
            command: vec!["--".into(), "--cwd".into(), "".into()],
        };
        let bare = Options {
            stage: Stage::Guard,
            grace: DEFAULT_GRACE,
            cwd: None,
            umask: None,
            priority: Priority::OfTheOwner,
            fence: Some(Sandbox::default()),
            command: vec!["x".into()],
        };
        let confined =
            Options { fence: Some(Sandbox { reads: Reads::Only(Vec::new()), writable: Vec::new() }), ..bare.clone() };
        for options in [full, bare, confined] {
            assert_eq!(Options::parse(options.to_args().into_iter()), Ok(options));
        }
    }

    #[test]
    fn a_wrong_command_line_is_refused_with_the_way_out() {
        let cases = [
            (vec![], "no command"),
            (vec!["--"], "no command"),
            (vec!["--what", "--", "x"], "unknown option `--what`"),
            (vec!["--grace-ms", "soon", "--", "x"], "`--grace-ms` needs a number"),
            (vec!["--launched-by", "0", "--", "x"], "`--launched-by` needs a process id"),
            (vec!["--cwd"], "`--cwd` needs a folder"),
            (vec!["--read"], "`--read` needs a path"),
            (vec!["--nice", "-1", "--", "x"], "`--nice` needs a number"),
        ];
        for (args, expected) in cases {
            let error = Options::parse(args.iter().map(Into::into)).unwrap_err().to_string();
            assert!(error.contains(expected), "{args:?}: {error}");
        }
    }
}
