//! Commands that an agent runs through us: no shell, inside the workspace, with an environment from empty, output bounded.

mod output;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gembridge_process::{
    CommandSpec, Environment, Exit, ExitWatch, Handle, LineError, LineReader, Sandbox, SpawnError, Spawner, StderrTail,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Jail, JailError};
use output::Output;

/// How long the rest of the output may take to arrive after the command has ended.
const DRAIN: Duration = Duration::from_secs(2);

/// The terminals of one session. Dropping it ends every command with all that it started.
#[derive(Debug)]
pub struct Terminals {
    spawner: Spawner,
    jail: Arc<Jail>,
    environment: Environment,
    fence: Option<Sandbox>,
    limits: TerminalLimits,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    terminals: BTreeMap<TerminalId, Terminal>,
}

#[derive(Debug, Clone, Copy)]
pub struct TerminalLimits {
    /// How many may be open at once.
    pub terminals: usize,
    /// Output kept when the agent names no limit, and at most when it does.
    pub output_bytes: usize,
}

impl Default for TerminalLimits {
    fn default() -> Self {
        Self { terminals: 16, output_bytes: 1024 * 1024 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TerminalId(pub String);

/// What to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalCommand {
    /// A program, looked up in the environment's PATH; never a line for a shell.
    pub command: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// A folder inside the workspace; the workspace itself if not given.
    pub cwd: Option<String>,
    pub output_byte_limit: Option<u64>,
}

/// What came out so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalOutput {
    pub output: String,
    /// The beginning was dropped to keep within the limit.
    pub truncated: bool,
    pub exit: Option<TerminalExit>,
}

/// How a command ended: one of the two is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalExit {
    pub code: Option<i32>,
    pub signal: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    #[error("terminal `{0}` is not open; it was released or never created")]
    Unknown(String),
    #[error("{0} terminals are open, as many as a session may have; release one")]
    TooMany(usize),
    #[error("`{0}` cannot be a command, an argument or a variable; leave out NUL, and `=` in names")]
    BadWord(String),
    #[error(transparent)]
    Folder(#[from] JailError),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

/// One running or finished command. The handle owns the tree, the reader owns the pipe.
#[derive(Debug)]
struct Terminal {
    handle: Arc<Handle>,
    stderr: StderrTail,
    output: Arc<Mutex<Output>>,
    drained: CancellationToken,
    _reader: JoinSet<()>,
}

impl Terminals {
    /// `environment` is what every command gets; what the agent names is added to it.
    pub fn new(spawner: Spawner, jail: Arc<Jail>, environment: Environment, limits: TerminalLimits) -> Self {
        Self { spawner, jail, environment, fence: None, limits, open: Mutex::default() }
    }

    /// The same with the fence of the agent around every command: what the agent may not touch itself, no terminal touches for it.
    #[must_use]
    pub fn fenced(mut self, fence: Option<Sandbox>) -> Self {
        self.fence = fence;
        self
    }

    /// Starts a command and returns once it runs.
    pub async fn create(&self, command: TerminalCommand) -> Result<TerminalId, TerminalError> {
        self.check_room()?;
        let keep = command.output_byte_limit.and_then(|limit| usize::try_from(limit).ok());
        let keep = keep.unwrap_or(self.limits.output_bytes).min(self.limits.output_bytes);
        let child = self.spawner.spawn(self.spec(command)?).await?;
        let handle = Arc::new(child.handle);
        let output = Arc::new(Mutex::new(Output::keeping(keep)));
        let drained = CancellationToken::new();
        let mut reader = JoinSet::new();
        reader.spawn(drain(child.stdout, Arc::clone(&output), Arc::clone(&handle), drained.clone()));
        let terminal = Terminal { handle, stderr: child.stderr, output, drained, _reader: reader };
        let mut open = self.open();
        open.next += 1;
        let id = TerminalId(format!("terminal-{}", open.next));
        open.terminals.insert(id.clone(), terminal);
        Ok(id)
    }

    /// The output so far and, if it has ended, how.
    pub fn output(&self, id: &TerminalId) -> Result<TerminalOutput, TerminalError> {
        let open = self.open();
        let terminal = open.find(id)?;
        let (output, truncated) = lock(&terminal.output).with_errors(&terminal.stderr.lines().join("\n"));
        Ok(TerminalOutput { output, truncated, exit: terminal.handle.watch().exit().map(TerminalExit::from) })
    }

    /// When the command has ended and its output is read.
    pub async fn wait_for_exit(&self, id: &TerminalId) -> Result<TerminalExit, TerminalError> {
        let (watch, drained): (ExitWatch, CancellationToken) = {
            let open = self.open();
            let terminal = open.find(id)?;
            (terminal.handle.watch(), terminal.drained.clone())
        };
        let exit = watch.wait().await;
        if tokio::time::timeout(DRAIN, drained.cancelled()).await.is_err() {
            tracing::debug!(terminal = %id.0, "the output is still open after the command has ended");
        }
        Ok(exit.into())
    }

    /// Ends the command and all that it started; its output stays until it is released.
    pub fn kill(&self, id: &TerminalId) -> Result<(), TerminalError> {
        self.open().find(id)?.handle.end();
        Ok(())
    }

    /// Ends the command if it still runs and forgets it.
    pub fn release(&self, id: &TerminalId) -> Result<(), TerminalError> {
        let released = self.open().terminals.remove(id).ok_or_else(|| TerminalError::Unknown(id.0.clone()))?;
        released.handle.end();
        Ok(())
    }

    /// Ends every command and forgets it, also while somebody waits for its end.
    pub fn end_all(&self) {
        for terminal in std::mem::take(&mut self.open().terminals).values() {
            terminal.handle.end();
        }
    }

    fn check_room(&self) -> Result<(), TerminalError> {
        let count = self.open().terminals.len();
        if count >= self.limits.terminals { Err(TerminalError::TooMany(count)) } else { Ok(()) }
    }

    fn spec(&self, command: TerminalCommand) -> Result<CommandSpec, TerminalError> {
        let words = command.args.iter().chain([&command.command]).chain(command.env.iter().map(|(_, value)| value));
        let bad_word = words.into_iter().find(|word| word.contains('\0'));
        let bad_name =
            command.env.iter().map(|(name, _)| name).find(|name| name.is_empty() || name.contains(['\0', '=']));
        if let Some(bad) = bad_word.or(bad_name) {
            return Err(TerminalError::BadWord(bad.escape_debug().to_string()));
        }
        let cwd = self.jail.folder(command.cwd.as_deref())?;
        let environment =
            command.env.into_iter().fold(self.environment.clone(), |all, (name, value)| all.with(name, value));
        let mut command = CommandSpec::new(command.command, environment).args(command.args).cwd(cwd);
        command.sandbox.clone_from(&self.fence);
        Ok(command.umask(Some(self.jail.umask())))
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        lock(&self.open)
    }
}

impl Drop for Terminals {
    fn drop(&mut self) {
        self.end_all();
    }
}

impl Open {
    fn find(&self, id: &TerminalId) -> Result<&Terminal, TerminalError> {
        self.terminals.get(id).ok_or_else(|| TerminalError::Unknown(id.0.clone()))
    }
}

/// Reads the pipe to its end, so that a command never waits for us.
async fn drain(mut stdout: LineReader, output: Arc<Mutex<Output>>, handle: Arc<Handle>, drained: CancellationToken) {
    loop {
        match stdout.next_batch().await {
            Ok(Some(batch)) => {
                let mut output = lock(&output);
                for line in &batch {
                    output.push(line);
                    output.push(b"\n");
                }
            }
            Ok(None) => {
                lock(&output).push(stdout.unfinished());
                break;
            }
            Err(error) => {
                lock(&output).push(format!("[{error}]\n").as_bytes());
                if matches!(error, LineError::TooLong { .. }) {
                    handle.end();
                }
                break;
            }
        }
    }
    drained.cancel();
}

/// What a poisoned lock guards here is plain data that is whole after every step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<Exit> for TerminalExit {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self { code: Some(code), signal: None },
            Exit::Signal(number) => Self { code: None, signal: Some(signal_name(number)) },
        }
    }
}

fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        6 => "SIGABRT",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return number.to_string(),
    };
    name.to_owned()
}
