//! What the end of a process means where its own words do not say it.

use gembridge_core::model::{Failure, FailureKind};
use gembridge_process::Exit;

use super::decode::Verdict;
use crate::profile::StreamFormat;

/// Why a turn came to no good end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The session that was to be gone on with is not there.
    UnknownSession(Failure),
    Failed(Failure),
}

/// What went wrong, by the `result` line where there is one, else by the exit code and what the program wrote last.
pub(super) fn trouble(
    agent: &str,
    format: StreamFormat,
    verdict: Option<&Verdict>,
    exit: Exit,
    stderr: &str,
) -> Trouble {
    let told = match verdict {
        Some(Verdict::Failed(told)) => told.trim().to_owned(),
        _ => last_line(stderr),
    };
    if is_unknown_session(&told) || is_unknown_session(stderr) {
        let failure = Failure::new(FailureKind::Crashed, format!("agent `{agent}` no longer has the session"));
        return Trouble::UnknownSession(failure);
    }
    let what = if told.is_empty() { exit.to_string() } else { told.clone() };
    let kind = match status(format, exit, &told) {
        Some(401) => FailureKind::NeedsLogin,
        Some(403) => FailureKind::Refused { code: 403 },
        Some(429) => FailureKind::RateLimited,
        Some(code) => by_words(code, &told),
        None => by_exit(format, exit, verdict, &told),
    };
    let text = match kind {
        FailureKind::NeedsLogin => format!("agent `{agent}` is not logged in: {what}"),
        FailureKind::RateLimited => format!("the provider of agent `{agent}` asks to slow down: {what}"),
        FailureKind::Crashed => format!("agent `{agent}` ended without a result ({exit}): {what}"),
        _ => format!("agent `{agent}` failed: {what}"),
    };
    let mut failure = Failure::new(kind, text);
    failure.stderr_tail = Some(stderr.to_owned()).filter(|tail| !tail.is_empty());
    Trouble::Failed(failure)
}

fn is_unknown_session(told: &str) -> bool {
    told.contains("No conversation found with session ID") || told.contains("Invalid session identifier")
}

/// The HTTP status behind a failure: named in the words, or left by Gemini CLI in its exit code.
fn status(format: StreamFormat, exit: Exit, told: &str) -> Option<i64> {
    let after = |mark: &str| {
        let rest = told.split_once(mark)?.1.trim_start();
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<i64>().ok().filter(|status| (400..600).contains(status))
    };
    let in_words = after("API Error: ").or_else(|| after("\"code\":"));
    in_words.or_else(|| match (format, exit) {
        // What is left of a status in eight bits.
        (StreamFormat::Gemini, Exit::Code(code @ (144..=173 | 244..=248))) => Some(i64::from(code) + 256),
        _ => None,
    })
}

fn by_words(code: i64, told: &str) -> FailureKind {
    let told = told.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| told.contains(words));
    if says(&["context window", "context length", "prompt is too long", "input token count"]) {
        FailureKind::ContextFull { code }
    } else if told.contains("model") && says(&["not found", "not_found", "does not exist", "is not supported"]) {
        FailureKind::UnknownModel { code }
    } else {
        FailureKind::Refused { code }
    }
}

/// The exit codes that Gemini CLI has for itself; all other programs have none.
fn by_exit(format: StreamFormat, exit: Exit, verdict: Option<&Verdict>, told: &str) -> FailureKind {
    let says_login =
        ["Invalid API key", "Please run /login", "set an Auth method"].iter().any(|words| told.contains(words));
    match (format, exit) {
        _ if says_login => FailureKind::NeedsLogin,
        (StreamFormat::Gemini, Exit::Code(41)) => FailureKind::NeedsLogin,
        (StreamFormat::Gemini, Exit::Code(42 | 44 | 52 | 54)) => FailureKind::Refused { code: code(exit) },
        // The folder is not trusted.
        (StreamFormat::Gemini, Exit::Code(55)) => FailureKind::Forbidden,
        _ if verdict.is_some() => by_words(code(exit), told),
        _ => FailureKind::Crashed,
    }
}

fn code(exit: Exit) -> i64 {
    match exit {
        Exit::Code(code) => i64::from(code),
        Exit::Signal(signal) => -i64::from(signal),
    }
}

/// The last thing that the program wrote to its standard error, traces of its own code aside.
fn last_line(stderr: &str) -> String {
    let is_word = |line: &&str| !line.is_empty() && !line.starts_with("at ") && !line.starts_with("Warning: ");
    stderr.lines().map(str::trim).rfind(is_word).unwrap_or_default().chars().take(500).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(format: StreamFormat, verdict: Option<&str>, code: i32, stderr: &str) -> FailureKind {
        let verdict = verdict.map(|told| Verdict::Failed(told.to_owned()));
        match trouble("a", format, verdict.as_ref(), Exit::Code(code), stderr) {
            Trouble::Failed(failure) => failure.kind,
            Trouble::UnknownSession(_) => panic!("the session is known"),
        }
    }

    #[test]
    fn exit_codes_and_words_become_failures_by_what_can_be_done() {
        use StreamFormat::{Claude, Gemini};
        for (format, verdict, code, stderr, expected) in [
            (Gemini, None, 41, "Please set an Auth method", FailureKind::NeedsLogin),
            (Gemini, None, 42, "No input provided via stdin.", FailureKind::Refused { code: 42 }),
            (Gemini, None, 52, "settings", FailureKind::Refused { code: 52 }),
            (Gemini, None, 55, "untrusted", FailureKind::Forbidden),
            (Gemini, Some("x"), 145, "", FailureKind::NeedsLogin),
            (Gemini, Some("x"), 173, "", FailureKind::RateLimited),
            (Gemini, Some("x"), 247, "", FailureKind::Refused { code: 503 }),
            (
                Gemini,
                Some("[API Error: {\"error\":{\"code\":400,\"message\":\"bad\"}}]"),
                144,
                "",
                FailureKind::Refused { code: 400 },
            ),
            (Gemini, Some("model is not found"), 1, "", FailureKind::UnknownModel { code: 1 }),
            (Gemini, None, 0, "", FailureKind::Crashed),
            (Claude, Some("API Error: 429 slow down"), 1, "", FailureKind::RateLimited),
            (Claude, Some("API Error: 400 prompt is too long"), 1, "", FailureKind::ContextFull { code: 400 }),
            (Claude, Some("Invalid API key · Please run /login"), 1, "", FailureKind::NeedsLogin),
            (Claude, None, 145, "", FailureKind::Crashed),
        ] {
            assert_eq!(kind(format, verdict, code, stderr), expected, "{format:?} {verdict:?} {code} {stderr}");
        }
    }

    #[test]
    fn a_session_that_is_gone_is_told_apart_from_all_else() {
        for (format, stderr) in [
            (StreamFormat::Gemini, "Error resuming session: Invalid session identifier \"9\".\n  Use --list-sessions"),
            (StreamFormat::Claude, "No conversation found with session ID: 9"),
        ] {
            assert!(matches!(trouble("a", format, None, Exit::Code(1), stderr), Trouble::UnknownSession(_)));
        }
    }
}
