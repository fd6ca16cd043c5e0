//! The log: on standard error for people and, where a file is named, as JSON lines that rotate.
//!
//! Whoever logs never waits: records go through a bounded queue to one thread, and those that find it full are
//! counted. A file that cannot be written is replaced by standard error until it can.

mod collect;
mod file;
mod json;
mod record;
mod text;
mod writer;

use std::path::PathBuf;
use std::sync::OnceLock;

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::settings::{Level, LogSettings};
use crate::terminal::{Stream, write_stderr};
use collect::{Collector, Most};
use file::RotatingFile;
pub use writer::Log;
use writer::{Files, Stderr, Writer};

/// What shall be logged where.
#[derive(Clone, Debug)]
pub struct Plan {
    pub level: Level,
    /// What standard error gets of what is said.
    pub stderr_level: Level,
    pub is_coloured: bool,
    pub file: Option<PathBuf>,
    pub errors_file: Option<PathBuf>,
    pub rotate_at: u64,
    /// Where the audit goes, which is never rotated.
    pub audit: Option<PathBuf>,
}

/// How much a command says by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    /// Errors only, whatever the settings say.
    Quiet,
    /// What the settings say, `default` without them.
    Normal { default: Level },
}

impl Plan {
    pub fn new(settings: &LogSettings, verbosity: Verbosity, stderr: Stream) -> Self {
        let (level, stderr_level) = match verbosity {
            Verbosity::Quiet => (settings.level.unwrap_or(Level::Warn), Level::Error),
            Verbosity::Normal { default } => {
                // All that is said, whatever the level becomes.
                (settings.level.unwrap_or(default), Level::Debug)
            }
        };
        Self {
            level,
            stderr_level,
            is_coloured: stderr.is_coloured,
            file: settings.file.as_ref().map(|path| path.as_path().to_owned()),
            errors_file: settings.errors_file.as_ref().map(|path| path.as_path().to_owned()),
            rotate_at: settings.rotate.0,
            audit: None,
        }
    }
}

/// Of the one log that a process has.
static MOST: OnceLock<Most> = OnceLock::new();

/// Says more or less from now on.
pub fn set_level(level: Level) {
    if let Some(most) = MOST.get() {
        most.set(level);
    }
}

/// Starts the log of this process. Never fails: without its thread there is no log, and a sentence says so.
pub fn start(plan: &Plan) -> Log {
    let open = |path: &Option<PathBuf>| path.clone().map(|path| RotatingFile::new(path, plan.rotate_at));
    let audit = plan.audit.clone().map(|path| RotatingFile::new(path, u64::MAX));
    let files = Files { all: open(&plan.file), errors: open(&plan.errors_file), audit };
    let stderr = Stderr { level: plan.stderr_level, is_coloured: plan.is_coloured };
    let (sender, log) = match Writer::start(files, stderr, write_stderr) {
        Ok(started) => started,
        Err(error) => {
            write_stderr(&format!("gembridge: no log, since its thread does not start: {error}\n"));
            return Log::none();
        }
    };
    let most = Most::new(plan.level);
    let subscriber = tracing_subscriber::registry().with(Collector::new(most.clone(), sender));
    if subscriber.try_init().is_err() || MOST.set(most).is_err() {
        write_stderr("gembridge: the log was started twice; the second start is passed over\n");
    }
    log
}
