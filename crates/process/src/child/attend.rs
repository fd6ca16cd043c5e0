//! The attendant: one task per child that hears the guard's reports, collects the guard, and makes sure that nothing is left.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::RecvFlags;
use tokio::process::{Child as GuardProcess, ChildStderr};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::{Exit, Link, StderrTail};
use crate::guard::{MAX_REPORT, Report, StartFailure};
use crate::tag::{ChildTag, sweep_child};

/// A guard needs its grace and a moment. One that takes this much longer is stuck, stopped or broken.
const GUARD_PATIENCE: Duration = Duration::from_secs(10);

/// What is in the pipe when the last writer is gone is read in no time.
const STDERR_PATIENCE: Duration = Duration::from_secs(2);

/// The exit code of a Rust program that panicked.
const PANICKED: i32 = 101;

/// Where a child is in its life. Both parts move forward only.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    pub(crate) start: Start,
    pub(crate) end: End,
}

#[derive(Debug, Clone)]
pub(crate) enum Start {
    Pending,
    Refused(StartFailure),
    Running { pid: u32 },
}

#[derive(Debug, Clone)]
pub(crate) enum End {
    NotYet,
    /// The main process has ended.
    Exited(Exit),
    /// All of the tree has ended and is collected.
    Gone(Exit),
}

pub(crate) struct Attendant {
    pub(crate) guard: GuardProcess,
    pub(crate) link: Arc<Link>,
    pub(crate) stderr: (ChildStderr, StderrTail),
    pub(crate) tag: ChildTag,
    pub(crate) grace: Duration,
    pub(crate) life: watch::Sender<Life>,
}

impl Attendant {
    pub(crate) async fn run(mut self) {
        let (pipe, tail) = self.stderr;
        let drain = async move { tail.drain(pipe).await };
        tokio::pin!(drain);
        let mut drained = None;
        let mut reports = Reports::new();
        let mut overdue: Option<Instant> = None;
        let mut forced = false;
        let status = loop {
            tokio::select! {
                status = self.guard.wait() => break status,
                result = &mut drain, if drained.is_none() => drained = Some(result),
                ready = self.link.socket.readable(), if reports.open => match ready {
                    Ok(()) => reports.read(&self.life, |buffer| self.link.socket.try_read(buffer)),
                    Err(error) => reports.give_up(&error),
                },
                () = self.link.ending.cancelled(), if overdue.is_none() => {
                    self.link.hang_up();
                    overdue = Some(Instant::now() + self.grace + GUARD_PATIENCE);
                }
                () = sleep_until(overdue.unwrap_or_else(Instant::now)), if overdue.is_some() && !forced => {
                    forced = true;
                    force(&mut self.guard);
                }
            }
        };
        // The guard's last words may have come in the same moment; the runtime need not have noticed them yet.
        reports.read(&self.life, |buffer| {
            let (length, _) = rustix::net::recv(&self.link.socket, buffer, RecvFlags::DONTWAIT)?;
            Ok(length)
        });
        let exit = match status {
            Ok(status) => Exit::from(status),
            Err(error) => {
                tracing::error!(%error, "cannot collect a guard");
                Exit::Code(-1)
            }
        };
        // A guard that was killed or panicked could not clean up. One that repeats how its command ended looks the same
        // from here.
        if matches!(exit, Exit::Signal(_) | Exit::Code(PANICKED)) {
            sweep_up(self.tag).await;
        }
        if drained.is_none() {
            drained = timeout(STDERR_PATIENCE, drain).await.ok();
        }
        match drained {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::warn!(%error, "cannot read a child's stderr"),
            None => tracing::warn!("a child's stderr outlived its tree"),
        }
        self.life.send_modify(|life| life.end = End::Gone(life.exit().unwrap_or(exit)));
    }
}

fn force(guard: &mut GuardProcess) {
    tracing::warn!(pid = guard.id(), "a guard did not end its tree in time; killing it");
    if let Err(error) = guard.start_kill() {
        tracing::error!(%error, "cannot kill a guard");
    }
}

async fn sweep_up(tag: ChildTag) {
    match tokio::task::spawn_blocking(move || sweep_child(&tag)).await {
        Ok(Ok(swept)) if swept.killed + swept.left > 0 => {
            tracing::warn!(killed = swept.killed, left = swept.left, "a guard was killed; swept its tree");
        }
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::error!(%error, "cannot sweep the tree of a killed guard"),
        Err(error) => tracing::error!(%error, "the sweep of a killed guard's tree failed"),
    }
}

/// The guard's reports as they come in. The command shares the socket: what is not a report is passed over, and a
/// flood of it is not listened to.
#[derive(Debug)]
struct Reports {
    open: bool,
    line: Vec<u8>,
    heard: usize,
}

/// Three short lines are all that a guard has to say.
const MAX_HEARD: usize = 16 * MAX_REPORT;

impl Reports {
    fn new() -> Self {
        Self { open: true, line: Vec::new(), heard: 0 }
    }

    fn read(&mut self, life: &watch::Sender<Life>, mut receive: impl FnMut(&mut [u8]) -> io::Result<usize>) {
        let mut buffer = [0; MAX_REPORT];
        while self.open {
            match receive(&mut buffer) {
                Ok(0) => self.open = false,
                Ok(length) => self.take(&buffer[..length], life),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.give_up(&error),
            }
        }
    }

    fn give_up(&mut self, error: &io::Error) {
        tracing::debug!(%error, "a child's guard hung up");
        self.open = false;
    }

    fn take(&mut self, bytes: &[u8], life: &watch::Sender<Life>) {
        self.heard += bytes.len();
        self.open = self.heard < MAX_HEARD;
        for byte in bytes {
            if *byte == b'\n' {
                if let Some(report) = Report::parse(&self.line) {
                    life.send_if_modified(|life| life.hear(report));
                }
                self.line.clear();
            } else if self.line.len() < MAX_REPORT {
                self.line.push(*byte);
            }
        }
    }
}

impl Life {
    pub(crate) fn new() -> Self {
        Self { start: Start::Pending, end: End::NotYet }
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        match self.start {
            Start::Running { pid } => Some(pid),
            Start::Pending | Start::Refused(_) => None,
        }
    }

    pub(crate) fn exit(&self) -> Option<Exit> {
        match self.end {
            End::NotYet => None,
            End::Exited(exit) | End::Gone(exit) => Some(exit),
        }
    }

    pub(crate) fn gone(&self) -> Option<Exit> {
        match self.end {
            End::NotYet | End::Exited(_) => None,
            End::Gone(exit) => Some(exit),
        }
    }

    /// Only forward, so that a command that forges reports can do no more than end its own life early.
    fn hear(&mut self, report: Report) -> bool {
        match (report, &self.start, &self.end) {
            (Report::Started { pid }, Start::Pending, _) => self.start = Start::Running { pid },
            (Report::Failed(failure), Start::Pending, _) => self.start = Start::Refused(failure),
            (Report::Exited(exit), _, End::NotYet) => self.end = End::Exited(exit),
            _ => return false,
        }
        true
    }
}
