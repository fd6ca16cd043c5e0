//! The fault modes and quirks that a command line can switch on, and how they are spelled.

use std::{path::PathBuf, time::Duration};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    Ok,
    Slow(Duration),
    Banner,
    Garbage,
    BadUtf8,
    Batch,
    DupReply,
    UnknownId,
    LateReply(Duration),
    HangInit,
    HangPrompt,
    CrashMid(usize),
    Exit0Mid,
    HalfLine,
    HugeLine(usize),
    Flood(usize),
    StderrFlood(usize),
    NoReadStdin(StopReading),
    PermissionStorm(usize),
    FsEscape,
    DumpEnv,
    NeedsAuth,
    BadVersion,
    CrashStart,
    CrashStartWhile(PathBuf),
    IgnoreSigterm,
    IgnoreEof,
    Fork,
    ForkSetsid,
    /// The id of a message decides what becomes of it, as the A2A conformance suite wants it.
    A2aTck,
    Offspring(Offspring),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReading {
    AfterLines(usize),
    OnceASessionIsOpen,
}

/// What a process started by `fork` or `fork-setsid` is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offspring {
    /// Lives in the agent's group.
    Child,
    /// Lives in a session of its own and starts the parent of a daemon.
    SessionLeader,
    /// Starts a daemon and ends, so that the daemon's parent is gone.
    DaemonParent,
    /// Lives in a session of its own, adopted by whoever reaps.
    Daemon,
}

impl Offspring {
    pub const ALL: [Self; 4] = [Self::Child, Self::SessionLeader, Self::DaemonParent, Self::Daemon];

    pub fn spelled(self) -> &'static str {
        match self {
            Self::Child => "offspring:child",
            Self::SessionLeader => "offspring:session-leader",
            Self::DaemonParent => "offspring:daemon-parent",
            Self::Daemon => "offspring:daemon",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quirk {
    NoToolCallBeforePermission,
    StraddlingLoad,
    SecondPromptCancelsFirst,
    ModeUpdateText,
    CancelWaitsForPermission,
    ErrorOnCancel,
    NoAcpFlag,
}

impl Mode {
    pub fn parse(word: &str) -> Result<Self, String> {
        let (name, value) = match word.split_once(':') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        let mode = match (name, value) {
            ("ok", None) => Self::Ok,
            ("slow", Some(ms)) => Self::Slow(milliseconds(ms)?),
            ("banner", None) => Self::Banner,
            ("garbage", None) => Self::Garbage,
            ("badutf8", None) => Self::BadUtf8,
            ("batch", None) => Self::Batch,
            ("dup-reply", None) => Self::DupReply,
            ("unknown-id", None) => Self::UnknownId,
            ("late-reply", ms) => Self::LateReply(milliseconds(ms.unwrap_or("2000"))?),
            ("hang-init", None) => Self::HangInit,
            ("hang-prompt", None) => Self::HangPrompt,
            ("crash-mid", Some(n)) => Self::CrashMid(size(n)?),
            ("exit0-mid", None) => Self::Exit0Mid,
            ("halfline", None) => Self::HalfLine,
            ("hugeline", Some(n)) => Self::HugeLine(size(n)?),
            ("flood", Some(n)) => Self::Flood(size(n)?),
            ("stderr-flood", n) => Self::StderrFlood(size(n.unwrap_or("4M"))?),
            ("no-read-stdin", None) => Self::NoReadStdin(StopReading::OnceASessionIsOpen),
            ("no-read-stdin", Some(n)) => Self::NoReadStdin(StopReading::AfterLines(size(n)?)),
            ("permission-storm", n) => Self::PermissionStorm(size(n.unwrap_or("1000"))?),
            ("fs-escape", None) => Self::FsEscape,
            ("dump-env", None) => Self::DumpEnv,
            ("needs-auth", None) => Self::NeedsAuth,
            ("bad-version", None) => Self::BadVersion,
            ("crash-start", None) => Self::CrashStart,
            ("crash-start-while", Some(path)) => Self::CrashStartWhile(path.into()),
            ("ignore-sigterm", None) => Self::IgnoreSigterm,
            ("ignore-eof", None) => Self::IgnoreEof,
            ("fork", None) => Self::Fork,
            ("fork-setsid", None) => Self::ForkSetsid,
            ("a2a-tck", None) => Self::A2aTck,
            _ => match Offspring::ALL.into_iter().find(|kind| kind.spelled() == word) {
                Some(kind) => Self::Offspring(kind),
                None => return Err(format!("mode `{word}` is not known; `--help` lists all")),
            },
        };
        Ok(mode)
    }
}

impl Quirk {
    pub fn parse(word: &str) -> Result<Self, String> {
        Ok(match word {
            "no-tool-call-before-permission" => Self::NoToolCallBeforePermission,
            "straddling-load" => Self::StraddlingLoad,
            "second-prompt-cancels-first" => Self::SecondPromptCancelsFirst,
            "mode-update-text" => Self::ModeUpdateText,
            "cancel-waits-for-permission" => Self::CancelWaitsForPermission,
            "error-on-cancel" => Self::ErrorOnCancel,
            "no-acp-flag" => Self::NoAcpFlag,
            _ => return Err(format!("quirk `{word}` is not known; `--help` lists all")),
        })
    }
}

/// Reads `300M` as 300 · 2²⁰.
pub fn size(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: usize = digits.parse().map_err(|_| format!("`{text}` is not a size; write `300`, `64K` or `1G`"))?;
    Ok(number << shift)
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    let number = text.parse().map_err(|_| format!("`{text}` is not a number of milliseconds; write `50`"))?;
    Ok(Duration::from_millis(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_a_unit() {
        for (text, expected) in [("300", 300), ("64K", 65_536), ("2m", 2_097_152), ("1G", 1_073_741_824)] {
            assert_eq!(size(text), Ok(expected), "{text}");
        }
        for text in ["", "K", "1.5M", "-1"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_mode_without_its_value_is_refused() {
        for word in ["slow", "crash-mid", "flood", "banner:3", "nonsense", "offspring:nephew"] {
            assert!(Mode::parse(word).is_err(), "{word}");
        }
    }
}
