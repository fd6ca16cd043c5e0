//! The guard: our own binary, re-executed as the tiny parent of one child's whole tree.
//!
//! `<program> guard [options] -- command args…` becomes the subreaper of everything that the command starts, and ends
//! all of it when the command ends, when it is told to by a signal, or when the other end of its standard input is
//! closed: by choice, by a crash, or by `kill -9` of the owner.
//!
//! The owner may be large and threaded and therefore only ever uses `posix_spawn`. What has to happen between fork and
//! exec happens here, in a process that is small, has one thread and no runtime.

mod launch;
mod options;
mod priority;
mod report;
mod supervise;
mod tree;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

pub(crate) use options::DEFAULT_GRACE;
pub(crate) use options::{Options, Stage};
pub(crate) use report::{MAX_REPORT, Report, StartFailure, StartStage};

/// The word that selects the guard on the command line of the binary that contains it.
pub const COMMAND: &str = "guard";

/// Runs the guard. `args` are what follows the word `guard`.
///
/// Call it first thing in `main`, before a runtime, a logger or an argument parser exists.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    match Options::parse(args) {
        Ok(options) => match options.stage {
            Stage::Guard => supervise::run(&options),
            Stage::Launch { guard } => launch::become_command(&options, guard),
        },
        Err(problem) => {
            complain(&problem);
            ExitCode::from(EXIT_USAGE)
        }
    }
}

/// `eprintln!` would panic when nobody reads any more, which is just when a guard has work to do.
fn complain(problem: &dyn std::fmt::Display) {
    if writeln!(std::io::stderr(), "guard: {problem}").is_err() {
        // Nobody is left to hear it.
    }
}

/// The exit codes of the guard itself, those that shells use for the same things.
const EXIT_USAGE: u8 = 2;
const EXIT_NOT_STARTED: u8 = 127;
