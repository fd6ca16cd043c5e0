//! Children that carry a mark in their environment, so that a test finds every process that came of them.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use gembridge_process::{CommandSpec, Environment, GuardProgram, Spawner};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

pub const GUARD: &str = env!("CARGO_BIN_EXE_gembridge-guard");

/// Long enough for a loaded machine; a tree that goes is never waited for that long.
const GONE_WITHIN: Duration = Duration::from_mins(1);

/// One test's children.
pub struct Marked {
    pub spawner: Spawner,
    pub mark: String,
}

impl Marked {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self { spawner: Spawner::new(GuardProgram::at(GUARD)).unwrap(), mark }
    }

    pub fn env(&self) -> Environment {
        Environment::default().with("PATH", "/usr/bin:/bin").with("TEST_MARK", &self.mark)
    }

    pub fn command(&self, program: impl AsRef<Path>) -> CommandSpec {
        CommandSpec::new(program.as_ref(), self.env())
    }

    pub fn shell(&self, script: &str) -> CommandSpec {
        self.command("/bin/sh").args(["-c", script])
    }

    /// A process that owns such children, started apart from this one.
    pub fn owner(&self, task: &str, script: &str) -> Command {
        let mut command = program(env!("CARGO_BIN_EXE_process-test-owner"));
        command.args([task, GUARD, &self.mark, script]).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Pids and command lines of every living process with the mark.
    pub fn processes(&self) -> Vec<(i32, String)> {
        let entry = format!("TEST_MARK={}", self.mark).into_bytes();
        let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == entry)
        })
        .map(|pid: i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (pid, String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
    }

    pub async fn assert_all_gone(&self, after: &str) {
        let deadline = Instant::now() + GONE_WITHIN;
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "left after {after}: {left:?}");
            sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A copy of a file that can be run at once. Another process makes it: were it open here for writing, whatever a test
/// beside this one starts in that moment would hold it open too, and a program that is open for writing does not run.
pub async fn copy(from: impl AsRef<OsStr>, to: &Path) {
    assert!(program("cp").arg(from).arg(to).status().await.unwrap().success());
}

#[expect(clippy::disallowed_methods, reason = "the test is the owner's owner")]
pub fn program(path: &str) -> Command {
    Command::new(path)
}
