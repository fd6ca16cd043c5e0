//! The script in a prompt: each line that is a step, in order.

use std::{path::PathBuf, time::Duration};

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Say(String),
    Think(String),
    Chunks {
        count: usize,
        size: Option<usize>,
        delay: Duration,
    },
    Burst {
        count: usize,
        size: Option<usize>,
    },
    Content(String),
    Tool {
        kind: String,
        title: String,
        text: Option<String>,
        status: &'static str,
    },
    Diff {
        path: String,
        old: String,
        new: String,
    },
    Permission {
        variant: Variant,
        title: String,
    },
    Read {
        path: String,
        line: Option<u64>,
        limit: Option<u64>,
    },
    Write {
        path: String,
        text: String,
    },
    Terminal {
        command: String,
        args: Vec<String>,
        end: TerminalEnd,
    },
    Elicit,
    Ext,
    Notify,
    Plan(Vec<String>),
    Mode(String),
    Title(String),
    Commands,
    Config {
        id: String,
        value: String,
    },
    Usage,
    UsageQuota,
    UsageChunk,
    UsageUpdate,
    UnknownUpdate,
    UnknownContent,
    Sleep(Duration),
    WaitCancel,
    Until(PathBuf),
    Trail(usize),
    Stop(String),
    Error {
        code: i64,
        message: String,
    },
    Echo,
    Session,
    Env,
    /// Read by this process itself, not through the client.
    Open(PathBuf),
    /// Run by a shell of this process, not through the client.
    Shell(String),
    Stderr(String),
    Raw(String),
    Exit(i32),
    Abort,
}

/// What is odd about a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variant {
    Usual,
    OnlyAlways,
    NoOptions,
    UnknownKind,
    OtherSession,
    Withdrawn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalEnd {
    ByItself,
    Killed,
}

/// The text of all text blocks of a prompt, one below the other.
pub fn prompt_text(prompt: &Value) -> String {
    let blocks = prompt.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// In a history that is told in one prompt, what the user said last is the script.
pub fn parse(text: &str) -> Vec<Step> {
    let newest = text.rsplit_once("[User]\n").map_or(text, |(_, newest)| newest);
    newest.lines().flat_map(|line| line.split(" ;; ")).filter_map(|line| step(line.trim())).collect()
}

fn step(line: &str) -> Option<Step> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    let text = || rest.replace("\\n", "\n");
    let bare = |step: Step| rest.is_empty().then_some(step);
    match word {
        "say" => Some(Step::Say(text())),
        "think" => Some(Step::Think(text())),
        "chunks" => {
            let words = Words::of(rest);
            let delay = Duration::from_millis(words.number_after("delay").unwrap_or(0));
            Some(Step::Chunks { count: words.first_number()?, size: words.number_after("size"), delay })
        }
        "burst" => {
            let words = Words::of(rest);
            Some(Step::Burst { count: words.first_number()?, size: words.number_after("size") })
        }
        "content" => Some(Step::Content(rest.to_owned())),
        "tool" => tool(rest, "completed"),
        "tool-fail" => tool(rest, "failed"),
        "diff" => {
            let (path, change) = rest.split_once(' ')?;
            let (old, new) = change.split_once("=>")?;
            Some(Step::Diff { path: path.into(), old: old.trim().into(), new: new.trim().into() })
        }
        "permission" => Some(permission(rest)),
        "read" => {
            let words = Words::of(rest);
            let path = (*words.0.first()?).to_owned();
            Some(Step::Read { path, line: words.number_after("line"), limit: words.number_after("limit") })
        }
        "write" => {
            let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
            (!path.is_empty()).then(|| Step::Write { path: path.into(), text: text.trim_start().replace("\\n", "\n") })
        }
        "terminal" => terminal(rest, TerminalEnd::ByItself),
        "terminal-kill" => terminal(rest, TerminalEnd::Killed),
        "plan" => Some(Step::Plan(rest.split('|').map(|entry| entry.trim().to_owned()).collect())),
        "mode" => Some(Step::Mode(rest.into())),
        "title" => Some(Step::Title(rest.into())),
        "config" => rest.split_once(' ').map(|(id, value)| Step::Config { id: id.into(), value: value.into() }),
        "sleep" => rest.parse().ok().map(|ms| Step::Sleep(Duration::from_millis(ms))),
        "open" => Some(Step::Open(rest.into())),
        "shell" => Some(Step::Shell(rest.into())),
        "until" => Some(Step::Until(rest.into())),
        "trail" => rest.parse().ok().map(Step::Trail),
        "stop" => Some(Step::Stop(rest.into())),
        "error" => {
            let (code, message) = rest.split_once(' ').unwrap_or((rest, "as told"));
            code.parse().ok().map(|code| Step::Error { code, message: message.into() })
        }
        "stderr" => Some(Step::Stderr(text())),
        "raw" => Some(Step::Raw(rest.into())),
        "exit" => rest.parse().ok().map(Step::Exit),
        "elicit" => bare(Step::Elicit),
        "ext" => bare(Step::Ext),
        "notify" => bare(Step::Notify),
        "commands" => bare(Step::Commands),
        "usage" => bare(Step::Usage),
        "usage-quota" => bare(Step::UsageQuota),
        "usage-chunk" => bare(Step::UsageChunk),
        "usage-update" => bare(Step::UsageUpdate),
        "unknown-update" => bare(Step::UnknownUpdate),
        "unknown-content" => bare(Step::UnknownContent),
        "unknown-stop" => bare(Step::Stop("paused_for_tea".into())),
        "wait-cancel" => bare(Step::WaitCancel),
        "echo" => bare(Step::Echo),
        "session" => bare(Step::Session),
        "env" => bare(Step::Env),
        "abort" => bare(Step::Abort),
        _ => None,
    }
}

fn tool(rest: &str, status: &'static str) -> Option<Step> {
    let (kind, title) = rest.split_once(' ')?;
    let (title, text) = match title.split_once("=>") {
        Some((title, text)) => (title.trim(), Some(text.trim().replace("\\n", "\n"))),
        None => (title, None),
    };
    Some(Step::Tool { kind: kind.into(), title: title.into(), text, status })
}

fn permission(rest: &str) -> Step {
    let (word, title) = rest.split_once(' ').unwrap_or((rest, ""));
    let variant = match word {
        "only-always" => Variant::OnlyAlways,
        "no-options" => Variant::NoOptions,
        "unknown-kind" => Variant::UnknownKind,
        "other-session" => Variant::OtherSession,
        "withdrawn" => Variant::Withdrawn,
        _ => Variant::Usual,
    };
    let title = if variant == Variant::Usual { rest } else { title };
    Step::Permission { variant, title: if title.is_empty() { "touch file".into() } else { title.into() } }
}

fn terminal(rest: &str, end: TerminalEnd) -> Option<Step> {
    let mut words = rest.split_whitespace().map(str::to_owned);
    Some(Step::Terminal { command: words.next()?, args: words.collect(), end })
}

struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        Self(text.split_whitespace().collect())
    }

    fn first_number(&self) -> Option<usize> {
        self.0.first()?.parse().ok()
    }

    fn number_after<N: std::str::FromStr>(&self, word: &str) -> Option<N> {
        let position = self.0.iter().position(|candidate| *candidate == word)?;
        self.0.get(position + 1)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_step_or_nothing() {
        let table = [
            ("say hello\\nworld", vec![Step::Say("hello\nworld".into())]),
            ("say a ;; think b", vec![Step::Say("a".into()), Step::Think("b".into())]),
            ("hello there\nusage\nsaying", vec![Step::Usage]),
            ("echo this please", vec![]),
            ("[User]\nsay a\n\n[Assistant]\nusage\n\n[User]\nsay b", vec![Step::Say("b".into())]),
            (
                "chunks 3 size 60 delay 5",
                vec![Step::Chunks { count: 3, size: Some(60), delay: Duration::from_millis(5) }],
            ),
            ("chunks many", vec![]),
            ("write a/b.txt one\\ntwo", vec![Step::Write { path: "a/b.txt".into(), text: "one\ntwo".into() }]),
            ("read x line 2 limit 1", vec![Step::Read { path: "x".into(), line: Some(2), limit: Some(1) }]),
            ("permission", vec![Step::Permission { variant: Variant::Usual, title: "touch file".into() }]),
            (
                "permission no-options rm x",
                vec![Step::Permission { variant: Variant::NoOptions, title: "rm x".into() }],
            ),
            ("diff f a => b", vec![Step::Diff { path: "f".into(), old: "a".into(), new: "b".into() }]),
            ("error 429 too much", vec![Step::Error { code: 429, message: "too much".into() }]),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
