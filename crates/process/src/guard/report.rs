//! What the guard tells its owner, one line of text each, backwards over the socket that is the command's standard input.

use std::fmt;
use std::io;

use crate::child::Exit;
use crate::excerpt::escape_excerpt;

/// Longer lines are not ours: the command shares the socket and may write to it.
pub(crate) const MAX_REPORT: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// The command runs under this pid.
    Started { pid: u32 },
    /// The command never ran.
    Failed(StartFailure),
    /// The command's main process ended; what is left of its tree is being ended.
    Exited(Exit),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartFailure {
    pub(crate) stage: StartStage,
    /// The system's error number; 0 when the failure has words only.
    pub(crate) errno: i32,
    pub(crate) detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartStage {
    Prepare,
    Cwd,
    Fence,
    Exec,
}

impl StartFailure {
    pub(crate) fn new(stage: StartStage, error: &io::Error) -> Self {
        let detail = escape_excerpt(error.to_string().as_bytes(), MAX_REPORT / 4);
        Self { stage, errno: error.raw_os_error().unwrap_or(0), detail }
    }

    pub(crate) fn to_io_error(&self) -> io::Error {
        if self.errno == 0 { io::Error::other(self.detail.clone()) } else { io::Error::from_raw_os_error(self.errno) }
    }
}

impl StartStage {
    const ALL: [Self; 4] = [Self::Prepare, Self::Cwd, Self::Fence, Self::Exec];

    fn word(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Cwd => "cwd",
            Self::Fence => "fence",
            Self::Exec => "exec",
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { pid } => write!(formatter, "started {pid}"),
            Self::Failed(StartFailure { stage, errno, detail }) => {
                write!(formatter, "failed {} {errno} {detail}", stage.word())
            }
            Self::Exited(Exit::Code(code)) => write!(formatter, "exited code {code}"),
            Self::Exited(Exit::Signal(signal)) => write!(formatter, "exited signal {signal}"),
        }
    }
}

impl Report {
    /// `None` for a line that no guard wrote.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let (kind, rest) = std::str::from_utf8(line).ok()?.split_once(' ')?;
        match kind {
            "started" => Some(Self::Started { pid: rest.parse().ok()? }),
            "failed" => {
                let mut parts = rest.splitn(3, ' ');
                let word = parts.next()?;
                let stage = StartStage::ALL.into_iter().find(|stage| stage.word() == word)?;
                let errno = parts.next()?.parse().ok()?;
                Some(Self::Failed(StartFailure { stage, errno, detail: parts.next().unwrap_or_default().to_owned() }))
            }
            "exited" => match rest.split_once(' ')? {
                ("code", code) => Some(Self::Exited(Exit::Code(code.parse().ok()?))),
                ("signal", signal) => Some(Self::Exited(Exit::Signal(signal.parse().ok()?))),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_is_read_back() {
        let failure = StartFailure::new(StartStage::Fence, &io::Error::other("two\nlines"));
        let reports = [
            Report::Started { pid: 42 },
            Report::Failed(failure),
            Report::Failed(StartFailure { stage: StartStage::Exec, errno: 2, detail: String::new() }),
            Report::Exited(Exit::Code(3)),
            Report::Exited(Exit::Signal(9)),
        ];
        for report in reports {
            let line = report.to_string();
            assert!(!line.contains('\n') && line.len() < MAX_REPORT, "{line}");
            assert_eq!(Report::parse(line.as_bytes()), Some(report));
        }
    }

    #[test]
    fn what_a_command_writes_to_its_own_input_is_not_a_report() {
        for line in ["", "started", "started x", "failed", "failed soon 2", "exited", "exited code x", "hello world"] {
            assert_eq!(Report::parse(line.as_bytes()), None, "{line}");
        }
        assert_eq!(Report::parse(b"\xff \xff"), None);
    }
}
