//! How the program ends: a number for scripts, a sentence for people.

use std::fmt::Write as _;

use gembridge_core::model::{Failure, FailureKind, Outcome};

use crate::config::ConfigError;

/// What the exit code says. Rendered in `--help` by [`table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    Success,
    Failed,
    Usage,
    NoAgent,
    TimedOut,
    Cancelled,
    /// As the program that was launched.
    Program(u8),
}

impl ExitCode {
    const ALL: [Self; 6] = [Self::Success, Self::Failed, Self::Usage, Self::NoAgent, Self::TimedOut, Self::Cancelled];

    pub fn number(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NoAgent => 3,
            Self::TimedOut => 4,
            Self::Cancelled => 130,
            Self::Program(code) => code,
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Success => "it worked",
            Self::Failed => "the agent or its turn failed, or `doctor` found something broken",
            Self::Usage => "the command line or the configuration is wrong; nothing was started",
            Self::NoAgent => "the agent is not installed, or not logged in",
            Self::TimedOut => "the turn took too long",
            Self::Cancelled => "cancelled, as by Ctrl-C",
            Self::Program(_) => "as the program that was launched",
        }
    }

    /// How a turn's end shows as an exit code.
    pub fn of_outcome(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Finished(_) => Self::Success,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::Interrupted(failure) => Self::of_failure(failure),
        }
    }

    pub fn of_failure(failure: &Failure) -> Self {
        match failure.kind {
            FailureKind::NeedsLogin => Self::NoAgent,
            FailureKind::TimedOut => Self::TimedOut,
            FailureKind::ShuttingDown => Self::Cancelled,
            FailureKind::Refused { .. }
            | FailureKind::UnknownModel { .. }
            | FailureKind::ContextFull { .. }
            | FailureKind::RateLimited
            | FailureKind::Crashed
            | FailureKind::Protocol
            | FailureKind::Unavailable { .. }
            | FailureKind::QuotaReached { .. }
            | FailureKind::LimitReached
            | FailureKind::Forbidden
            | FailureKind::StoreFailed
            | FailureKind::Unsupported
            | FailureKind::Internal => Self::Failed,
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.number())
    }
}

/// The exit codes, for the end of `--help`.
pub fn table() -> String {
    let mut out = String::from("Exit codes:\n");
    for code in ExitCode::ALL {
        writeln!(out, "  {:<4} {}", code.number(), code.meaning()).expect("writing to a String cannot fail");
    }
    out
}

/// A command that did not do what it was asked: its exit code and the sentence for standard error.
#[derive(Debug)]
pub struct CommandError {
    pub code: ExitCode,
    pub error: anyhow::Error,
}

pub type CommandResult = Result<ExitCode, CommandError>;

impl CommandError {
    pub fn new(code: ExitCode, message: impl Into<String>) -> Self {
        Self { code, error: anyhow::Error::msg(message.into()) }
    }

    /// The command line is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ExitCode::Usage, message)
    }
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        Self { code: ExitCode::Usage, error: error.into() }
    }
}

impl From<Failure> for CommandError {
    fn from(failure: Failure) -> Self {
        Self::new(ExitCode::of_failure(&failure), with_way_out(&failure))
    }
}

/// What a failure says, with the command or the setting of this program that helps.
pub fn with_way_out(failure: &Failure) -> String {
    match failure.kind {
        FailureKind::NeedsLogin => format!("{}; `gembridge doctor` names the ways to log in", failure.message),
        FailureKind::TimedOut => {
            format!("{}; raise `turn.idle` or `turn.total` if it needs longer", failure.message)
        }
        _ => failure.message.clone(),
    }
}

impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        Self { code: ExitCode::Failed, error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_every_code_once() {
        let table = table();
        for code in ExitCode::ALL {
            assert_eq!(table.matches(&format!("  {:<4} ", code.number())).count(), 1, "{table}");
        }
    }

    #[test]
    fn an_outcome_becomes_the_code_that_a_script_can_act_on() {
        use gembridge_core::model::Stop;
        let interrupted = |kind| ExitCode::of_outcome(&Outcome::Interrupted(Failure::new(kind, "x")));
        assert_eq!(ExitCode::of_outcome(&Outcome::Finished(Stop::EndTurn)), ExitCode::Success);
        assert_eq!(ExitCode::of_outcome(&Outcome::Cancelled), ExitCode::Cancelled);
        assert_eq!(interrupted(FailureKind::TimedOut), ExitCode::TimedOut);
        assert_eq!(interrupted(FailureKind::NeedsLogin), ExitCode::NoAgent);
        assert_eq!(interrupted(FailureKind::Crashed), ExitCode::Failed);
    }
}
