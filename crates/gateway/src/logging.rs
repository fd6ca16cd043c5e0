//! The log: on standard error for people and, where a file is named, as JSON lines that rotate.
//!
//! Whoever logs never waits: records go through a bounded queue to one thread, and those that find it full are
//! counted. A file that cannot be written is replaced by standard error until it can.

mod file;
mod format;
mod queue;

use std::path::PathBuf;
use std::sync::OnceLock;

use jiff::Timestamp;
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::filter::{FilterFn, filter_fn};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::settings::{Level, LogSettings};
use crate::terminal::{Stream, write_stderr};
use file::RotatingFile;
use format::{Json, Text};
pub use queue::Log;
use queue::{Destination, Files, Lines, Sender, Stderr, Writer};

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
static LEVEL: OnceLock<reload::Handle<Gate, Registry>> = OnceLock::new();

/// Logs more or less from now on.
pub fn set_level(level: Level) {
    let Some(gate) = LEVEL.get() else { return };
    if let Err(error) = gate.reload(Gate(level)) {
        tracing::warn!(%error, "the level of the log stays as it was");
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
    let (gate, handle) = reload::Layer::new(Gate(plan.level));
    let is_started = tracing_subscriber::registry().with(gate).with(layers(plan, &sender)).try_init();
    if is_started.is_err() || LEVEL.set(handle).is_err() {
        write_stderr("gembridge: the log was started twice; the second start is passed over\n");
    }
    log
}

/// One layer for each destination that the plan names.
fn layers<S>(plan: &Plan, queue: &Sender) -> Vec<Box<dyn Layer<S> + Send + Sync>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let stderr_level = plan.stderr_level;
    let lines = |to, shown| Lines { queue: queue.clone(), to, shown };
    let json = |lines, filter| {
        let format = tracing_subscriber::fmt::layer().event_format(Json { now: Timestamp::now });
        format.with_writer(lines).with_filter(filter).boxed()
    };
    let text = Text { is_coloured: plan.is_coloured, now: Timestamp::now };
    let stderr = tracing_subscriber::fmt::layer().event_format(text);
    let stderr = stderr.with_writer(lines(Destination::Stderr, Level::Debug)).with_filter(log_down_to(stderr_level));
    let mut layers = vec![stderr.boxed()];
    if plan.file.is_some() {
        layers.push(json(lines(Destination::All, stderr_level), log_down_to(Level::Debug)));
    }
    if plan.errors_file.is_some() {
        layers.push(json(lines(Destination::Errors, stderr_level), log_down_to(Level::Error)));
    }
    if plan.audit.is_some() {
        layers.push(json(lines(Destination::Audit, stderr_level.min(Level::Warn)), audit()));
    }
    layers
}

type Filter = FilterFn<Box<dyn Fn(&Metadata<'_>) -> bool + Send + Sync>>;

/// The log itself: all but what is for the audit alone.
fn log_down_to(least: Level) -> Filter {
    filter_fn(Box::new(move |metadata| {
        let Some(level) = level_of(metadata) else { return false };
        level <= least && (metadata.target() != AUDIT || level <= Level::Warn)
    }))
}

fn audit() -> Filter {
    filter_fn(Box::new(|metadata| metadata.target() == AUDIT))
}

/// What goes into the audit as well; below a warning, nowhere else.
const AUDIT: &str = "gembridge::audit";

/// Our own crates log as much as asked; of others only warnings are of interest.
const OURS: &str = "gembridge";

/// Calls it an error when an agent leaves its tools, as each does in the end. It is read only when looking for faults.
const EXCITED: &str = "rmcp";

/// How much is logged at all, whatever the destination.
struct Gate(Level);

impl Gate {
    fn lets_pass(&self, metadata: &Metadata<'_>) -> bool {
        let Some(level) = level_of(metadata) else { return false };
        let target = metadata.target();
        if target == AUDIT {
            return level <= Level::Info;
        }
        if target.starts_with(EXCITED) {
            return self.0 == Level::Debug && level <= Level::Warn;
        }
        level <= if target.starts_with(OURS) { self.0 } else { self.0.min(Level::Warn) }
    }
}

impl<S: Subscriber> Layer<S> for Gate {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.lets_pass(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // The audit is of the info level, whatever the level of the log.
        Some(if self.0 == Level::Debug { LevelFilter::DEBUG } else { LevelFilter::INFO })
    }
}

/// `None` for the trace level, which is not offered.
fn level_of(metadata: &Metadata<'_>) -> Option<Level> {
    match *metadata.level() {
        tracing::Level::ERROR => Some(Level::Error),
        tracing::Level::WARN => Some(Level::Warn),
        tracing::Level::INFO => Some(Level::Info),
        tracing::Level::DEBUG => Some(Level::Debug),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
