//! Starting a child: under a guard, through `posix_spawn` only, with typed reasons when it does not start.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::process::Command as TokioCommand;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::child::attend::{Attendant, End, Life, Start};
use crate::child::secrets::Secrets;
use crate::child::socket::Socket;
use crate::child::{Child, Exit, ExitWatch, Handle, Link, StderrTail, Writer};
use crate::environment::Environment;
use crate::guard::{self, Options, Stage, StartFailure, StartStage};
use crate::lines::{DEFAULT_LINE_LIMIT, LineReader};
use crate::sandbox::Sandbox;
use crate::tag::{ChildTag, RunTag, TAG_VARIABLE};

/// A chatty child gets ahead of its reader by this much before it is held up.
const STDOUT_PIPE: usize = 256 * 1024;

/// Numbers the children of this process, whichever spawner starts them: the tag of a child is its own.
static CHILDREN: AtomicU64 = AtomicU64::new(0);

/// What to run. The environment is complete: nothing of ours is added but the tag of the run.
///
/// The command's standard input is a socket: reading it works like a pipe, opening it again as `/dev/stdin` does not.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// A path, or a name that is looked up in the `PATH` of `env`. Relative to `cwd`.
    pub program: OsString,
    pub args: Vec<OsString>,
    pub env: Environment,
    /// The caller's own folder if not given.
    pub cwd: Option<PathBuf>,
    /// What the files that it makes leave to others: nothing, if not given.
    pub umask: Option<u32>,
    pub priority: Priority,
    pub sandbox: Option<Sandbox>,
    pub limits: Limits,
}

impl CommandSpec {
    pub fn new(program: impl Into<OsString>, env: Environment) -> Self {
        let limits = Limits::default();
        Self {
            program: program.into(),
            args: Vec::new(),
            env,
            cwd: None,
            umask: None,
            priority: Priority::OfTheOwner,
            sandbox: None,
            limits,
        }
    }

    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    #[must_use]
    pub fn umask(mut self, umask: Option<u32>) -> Self {
        self.umask = umask;
        self
    }

    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// How much of a busy processor a child gets beside others. On an idle one it makes no difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// As much as whoever starts it.
    OfTheOwner,
    /// Less, by so many steps as `nice` counts them: five are a third, ten are a ninth. There is no way back up.
    Lowered(u8),
}

impl Priority {
    /// By so many steps, of which none leave it as it is.
    pub fn lowered_by(steps: u8) -> Self {
        if steps == 0 { Self::OfTheOwner } else { Self::Lowered(steps) }
    }
}

/// Bounds of one child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest line on stdout, in bytes.
    pub line: usize,
    /// The remembered end of stderr, in bytes.
    pub stderr_tail: usize,
    /// How long one write may wait for the child to read.
    pub write: Duration,
    /// How long the guard may take to start the command.
    pub start: Duration,
    /// Between SIGTERM and SIGKILL when the tree is ended.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line: DEFAULT_LINE_LIMIT,
            stderr_tail: 16 * 1024,
            write: Duration::from_secs(10),
            start: Duration::from_secs(30),
            grace: guard::DEFAULT_GRACE,
        }
    }
}

/// The binary that is run as the guard: one whose `main` hands `guard …` to [`guard::main`].
#[derive(Debug, Clone)]
pub struct GuardProgram {
    path: PathBuf,
}

impl GuardProgram {
    /// The binary of this process, even after it was replaced on disk.
    pub fn this_binary() -> Self {
        Self { path: PathBuf::from("/proc/self/exe") }
    }

    /// Another binary. A bare name would be looked up by the child's `PATH` at the price of a fork, so it is taken
    /// as a file in the current folder.
    pub fn at(path: impl AsRef<Path>) -> Self {
        Self { path: Path::new(".").join(path) }
    }
}

/// Why a child did not start. Nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("`{program}` was not found; install it or give its full path")]
    NotFound { program: String },
    #[error("`{program}` cannot be executed ({reason}); check its permissions and its first line")]
    NotExecutable { program: String, reason: io::Error },
    #[error("cannot enter the folder `{}`: {reason}", path.display())]
    Cwd { path: PathBuf, reason: io::Error },
    #[error("cannot fence `{program}`: {reason}; run without the sandbox or on a kernel with Landlock")]
    Sandbox { program: String, reason: String },
    #[error("cannot start `{program}`: {reason}")]
    Exec { program: String, reason: io::Error },
    #[error("`{program}` did not start within {deadline:?}")]
    Deadline { program: String, deadline: Duration },
    /// The guard itself could not be started: out of descriptors, processes or memory, or not where it should be.
    #[error("cannot start the guard of `{program}`: {reason}")]
    Guard { program: String, reason: io::Error },
    #[error("the guard of `{program}` ended before it started the command: {exit}; {stderr}")]
    GuardEnded { program: String, exit: Exit, stderr: String },
}

/// Starts children and owns the tasks that attend to them. Cheap to clone; the clones are one.
#[derive(Debug, Clone)]
pub struct Spawner {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    guard: GuardProgram,
    run: RunTag,
    attendants: TaskTracker,
    ending: CancellationToken,
}

impl Spawner {
    /// Fails only where `/proc` is missing.
    pub fn new(guard: GuardProgram) -> io::Result<Self> {
        Ok(Self {
            shared: Arc::new(Shared {
                guard,
                run: RunTag::current()?,
                attendants: TaskTracker::new(),
                ending: CancellationToken::new(),
            }),
        })
    }

    /// Starts a child and waits until it runs. If the future is dropped, so is the child.
    pub async fn spawn(&self, spec: CommandSpec) -> Result<Child, SpawnError> {
        let program = spec.program.to_string_lossy().into_owned();
        let deadline = spec.limits.start;
        let child = self.launch(&spec).map_err(|reason| SpawnError::Guard { program: program.clone(), reason })?;
        let started = child.handle.watch();
        let started = started.until(|life| match (&life.start, &life.end) {
            (Start::Running { .. }, _) => Some(Ok(())),
            (Start::Refused(failure), _) => Some(Err(refusal(&spec, failure))),
            (Start::Pending, End::Gone(exit)) => {
                let stderr = child.stderr.tail();
                Some(Err(SpawnError::GuardEnded { program: program.clone(), exit: *exit, stderr }))
            }
            (Start::Pending, End::NotYet | End::Exited(_)) => None,
        });
        match tokio::time::timeout(deadline, started).await {
            Ok(Ok(())) => Ok(child),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(SpawnError::Deadline { program, deadline }),
        }
    }

    /// The tag that every process of every child carries.
    pub fn run_tag(&self) -> &RunTag {
        &self.shared.run
    }

    /// Children that are not collected yet.
    pub fn living(&self) -> usize {
        self.shared.attendants.len()
    }

    /// Ends every child's tree, whoever holds its handle, and waits until all are gone. Children that are started
    /// afterwards are ended at once.
    pub async fn shut_down(&self) {
        self.shared.ending.cancel();
        self.shared.attendants.close();
        self.shared.attendants.wait().await;
    }

    /// Starts the guard. From the first moment the attendant collects it and the handle ends it.
    fn launch(&self, spec: &CommandSpec) -> io::Result<Child> {
        let (ours, theirs) = UnixStream::pair()?;
        let link = Arc::new(Link { socket: Socket::new(ours)?, ending: self.shared.ending.child_token() });
        let number = CHILDREN.fetch_add(1, Ordering::Relaxed);
        let tag = ChildTag { run: self.shared.run.clone(), number };

        let mut guard = TokioCommand::from(self.guard_command(spec, &tag, theirs)).spawn()?;
        let guard_pid = guard.id().unwrap_or(0);
        let (life, watch) = watch::channel(Life::new());
        let handle = Handle::new(Arc::clone(&link), ExitWatch::new(guard_pid, watch));
        let (Some(stdout), Some(stderr)) = (guard.stdout.take(), guard.stderr.take()) else {
            unreachable!("both are piped in `guard_command`");
        };
        if let Err(error) = rustix::pipe::fcntl_setpipe_size(&stdout, STDOUT_PIPE) {
            tracing::debug!(%error, "cannot widen a child's pipe");
        }
        let tail = StderrTail::new(spec.limits.stderr_tail, Secrets::of(&spec.env));
        let attendant = Attendant {
            guard,
            link: Arc::clone(&link),
            stderr: (stderr, tail.clone()),
            tag,
            grace: spec.limits.grace,
            life,
        };
        self.shared.attendants.spawn(attendant.run());
        Ok(Child {
            stdin: Writer::new(link, spec.limits.write),
            stdout: LineReader::new(stdout, spec.limits.line),
            stderr: tail,
            handle,
        })
    }

    /// Nothing in here may make the standard library fork instead of `posix_spawn`: no hook before exec, no user or
    /// group, no program that needs the child's `PATH`. The folder is the guard's business for the same reason.
    fn guard_command(&self, spec: &CommandSpec, tag: &ChildTag, stdin: UnixStream) -> Command {
        let options = Options {
            stage: Stage::Guard,
            grace: spec.limits.grace,
            cwd: spec.cwd.clone(),
            umask: spec.umask,
            priority: spec.priority,
            fence: spec.sandbox.clone(),
            command: std::iter::once(&spec.program).chain(&spec.args).cloned().collect(),
        };
        #[expect(clippy::disallowed_methods, reason = "this crate is where processes are started")]
        let mut command = Command::new(&self.shared.guard.path);
        command
            .arg0("gembridge-guard")
            .arg(guard::COMMAND)
            .args(options.to_args())
            .env_clear()
            .envs(spec.env.iter())
            .env(TAG_VARIABLE, tag.to_string())
            .stdin(Stdio::from(OwnedFd::from(stdin)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

fn refusal(spec: &CommandSpec, failure: &StartFailure) -> SpawnError {
    let program = spec.program.to_string_lossy().into_owned();
    let reason = failure.to_io_error();
    match (failure.stage, reason.kind()) {
        (StartStage::Prepare, _) => SpawnError::Guard { program, reason },
        (StartStage::Cwd, _) => SpawnError::Cwd { path: spec.cwd.clone().unwrap_or_default(), reason },
        (StartStage::Fence, _) => SpawnError::Sandbox { program, reason: failure.detail.clone() },
        // A file that exists and is "not found" names an interpreter that does not.
        (StartStage::Exec, io::ErrorKind::NotFound) if !is_there(spec) => SpawnError::NotFound { program },
        (StartStage::Exec, io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            SpawnError::NotExecutable { program, reason }
        }
        (StartStage::Exec, _) if failure.errno == rustix::io::Errno::NOEXEC.raw_os_error() => {
            SpawnError::NotExecutable { program, reason }
        }
        (StartStage::Exec, _) => SpawnError::Exec { program, reason },
    }
}

fn is_there(spec: &CommandSpec) -> bool {
    let named = Path::new(&spec.program);
    let is_path = named.components().count() > 1;
    is_path && spec.cwd.as_deref().unwrap_or(Path::new("")).join(named).exists()
}
