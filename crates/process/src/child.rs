//! A running child: lines in, lines out, the tail of its stderr, and the handle that owns its whole tree.

pub(crate) mod attend;
pub(crate) mod secrets;
pub(crate) mod socket;
mod stderr;
mod writer;

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::Shutdown;
use rustix::process::Pid;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use crate::procfs::TreeMemory;
pub use stderr::StderrTail;
pub use writer::{Begun, WriteError, Writer};

use crate::lines::LineReader;
use crate::procfs;
use attend::Life;
use socket::Socket;

/// A child and its pipes. Take it apart as needed: the parts work from different tasks.
///
/// Whoever holds the [`Handle`] owns the child. The other parts do not keep it alive and do not end it.
#[derive(Debug)]
pub struct Child {
    pub stdin: Writer,
    pub stdout: LineReader,
    pub stderr: StderrTail,
    pub handle: Handle,
}

/// How a child's main process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

impl Exit {
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "exit code {code}"),
            Self::Signal(signal) => match signal_hook::low_level::signal_name(*signal) {
                Some(name) => write!(formatter, "signal {signal} ({name})"),
                None => write!(formatter, "signal {signal}"),
            },
        }
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match status.signal() {
            Some(signal) => Self::Signal(signal),
            None => Self::Code(status.code().unwrap_or(-1)),
        }
    }
}

/// How long each step of an orderly stop may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopPlan {
    /// From the end of the child's input until it is told to end. The guard's own grace follows.
    pub after_eof: Duration,
}

impl Default for StopPlan {
    fn default() -> Self {
        Self { after_eof: Duration::from_secs(1) }
    }
}

/// Our end of the child's standard input, and the switch that ends its tree. Shared by all parts of one child.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) socket: Socket,
    pub(crate) ending: CancellationToken,
}

impl Link {
    /// End of input for the child; the guard stays.
    fn close_input(&self) {
        self.shut(Shutdown::Write);
    }

    /// The guard sees its owner gone and ends the tree.
    pub(crate) fn hang_up(&self) {
        self.shut(Shutdown::Both);
    }

    fn shut(&self, how: Shutdown) {
        match rustix::net::shutdown(&self.socket, how) {
            Ok(()) | Err(rustix::io::Errno::NOTCONN) => {}
            Err(error) => tracing::warn!(%error, "cannot close a child's input"),
        }
    }
}

/// The owner of one child's tree. Dropping it ends the tree: SIGTERM, the grace of the command, SIGKILL. The guard is
/// collected in the background.
#[derive(Debug)]
pub struct Handle {
    link: Arc<Link>,
    watch: ExitWatch,
}

impl Handle {
    pub(crate) fn new(link: Arc<Link>, watch: ExitWatch) -> Self {
        Self { link, watch }
    }

    /// The guard, root of the child's tree.
    pub fn guard_pid(&self) -> u32 {
        self.watch.guard_pid()
    }

    /// The command's main process.
    pub fn pid(&self) -> Option<u32> {
        self.watch.pid()
    }

    /// A view of the end for others: cheap to clone, keeps nothing alive.
    pub fn watch(&self) -> ExitWatch {
        self.watch.clone()
    }

    /// When the main process has ended. What is left of its tree may still be ending.
    pub async fn wait(&self) -> Exit {
        self.watch.wait().await
    }

    /// Ends the input, waits as planned, ends the tree, and waits until nothing of it is left.
    pub async fn stop(&self, plan: StopPlan) -> Exit {
        self.link.close_input();
        // Whether it listened or not, the rest of the tree goes the same way.
        if tokio::time::timeout(plan.after_eof, self.watch.ended()).await.is_err() {
            self.end();
        }
        self.watch.ended().await
    }

    /// Ends the tree now and does not wait.
    pub fn end(&self) {
        self.link.hang_up();
        self.link.ending.cancel();
    }

    /// Memory of the whole tree, guard included.
    pub async fn memory(&self) -> io::Result<TreeMemory> {
        let root = i32::try_from(self.guard_pid()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
        tokio::task::spawn_blocking(move || procfs::tree_memory(root)).await.map_err(io::Error::other)?
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.end();
    }
}

/// Watches a child end.
#[derive(Debug, Clone)]
pub struct ExitWatch {
    guard_pid: u32,
    life: watch::Receiver<Life>,
}

impl ExitWatch {
    pub(crate) fn new(guard_pid: u32, life: watch::Receiver<Life>) -> Self {
        Self { guard_pid, life }
    }

    /// The guard, root of the child's tree.
    pub fn guard_pid(&self) -> u32 {
        self.guard_pid
    }

    /// The command's main process, once it runs.
    pub fn pid(&self) -> Option<u32> {
        self.life.borrow().pid()
    }

    /// How the main process ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.life.borrow().exit()
    }

    /// When the main process has ended.
    pub async fn wait(&self) -> Exit {
        self.until(Life::exit).await
    }

    /// When the whole tree is gone and collected, and its stderr is read to the end.
    pub async fn ended(&self) -> Exit {
        self.until(Life::gone).await
    }

    pub(crate) async fn until<T>(&self, mut seen: impl FnMut(&Life) -> Option<T>) -> T {
        let mut life = self.life.clone();
        let mut found = None;
        let waited = life
            .wait_for(|life| {
                found = seen(life);
                found.is_some()
            })
            .await
            .is_ok();
        match found {
            Some(found) if waited => found,
            // The attendant sends the end before it goes. Without it the runtime is shutting down, and this task too.
            _ => std::future::pending().await,
        }
    }
}
