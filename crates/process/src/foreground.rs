//! Programs that a person works with: they have the terminal of this process, and this process waits for them.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

/// Runs a program to its end, with these variables beside those of this process. Ctrl-C is for the program alone.
pub async fn run(
    program: &Path,
    args: impl IntoIterator<Item = &str>,
    variables: impl IntoIterator<Item = (&str, &str)>,
) -> io::Result<ExitStatus> {
    let (mut interrupts, mut ends) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut child = command(program).args(args).envs(variables).spawn()?;
    loop {
        tokio::select! {
            ended = child.wait() => return ended,
            // The terminal has sent it to the program as well.
            _ = interrupts.recv() => {}
            _ = ends.recv() => tell(&child, Signal::TERM),
        }
    }
}

/// The beginning of what a program prints when it is asked something. `None`: it did not say anything in time.
pub async fn printed(program: &Path, args: &[&str], patience: Duration) -> io::Result<Option<String>> {
    let mut command = command(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let Some(stdout) = child.stdout.take() else { return Ok(None) };
    let (mut stdout, mut printed) = (stdout.take(MOST_PRINTED), Vec::new());
    match tokio::time::timeout(patience, stdout.read_to_end(&mut printed)).await {
        Ok(read) => read.map(|_| Some(String::from_utf8_lossy(&printed).into_owned())),
        Err(_) => Ok(None),
    }
}

const MOST_PRINTED: u64 = 4 << 10;

/// A program in the background, for as long as this is held.
pub struct Service {
    child: Child,
}

impl Service {
    /// It gets no signals of the terminal, and writes to the file.
    pub fn start(program: &Path, args: &[&str], log: &File) -> io::Result<Self> {
        let mut command = command(program);
        command.args(args).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log.try_clone()?);
        Ok(Self { child: command.spawn()? })
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it to end, and ends it where it does not in time.
    pub async fn stop(mut self, patience: Duration) {
        tell(&self.child, Signal::TERM);
        if tokio::time::timeout(patience, self.child.wait()).await.is_err() {
            self.child.start_kill().ok();
        }
    }
}

fn tell(child: &Child, signal: Signal) {
    if let Some(pid) = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
        // It may be gone by now.
        kill_process(pid, signal).ok();
    }
}

#[expect(clippy::disallowed_methods, reason = "this crate is where processes are started")]
fn command(program: &Path) -> Command {
    Command::new(program)
}
