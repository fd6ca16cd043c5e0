//! The step between the guard and the command: a short-lived re-execution of this binary that prepares itself and then
//! turns into the command, so that nothing has to run between a fork and an exec.
//!
//! The gate is a socket that the launch stage gets as its standard input. Over it the guard passes the command's real
//! standard input, and the stage reports why it could not become the command. A successful exec closes it unread.

use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::cmsg_space;
use rustix::fs::Mode;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal, setsid};
use rustix::stdio::{dup2_stdin, stdin};

use super::priority;
use super::{COMMAND, EXIT_NOT_STARTED, Options, Report, Stage, StartFailure, StartStage, complain};
use crate::sandbox;

/// Starts the launch stage as a child of this guard; returns its pid, which becomes the command's, and the gate.
pub(super) fn start(options: &Options) -> io::Result<(Pid, UnixStream)> {
    let (gate, theirs) = UnixStream::pair()?;
    let launch = Options { stage: Stage::Launch { guard: getpid() }, ..options.clone() };
    #[expect(clippy::disallowed_methods, reason = "this crate is where processes are started")]
    let child = Command::new("/proc/self/exe")
        .arg0("gembridge-guard")
        .arg(COMMAND)
        .args(launch.to_args())
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;
    pass_stdin(&gate)?;
    gate.set_nonblocking(true)?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok((pid.ok_or(io::ErrorKind::InvalidData)?, gate))
}

/// The launch stage: returns only if the command could not be started.
pub(super) fn become_command(options: &Options, guard: Pid) -> ExitCode {
    let gate = match rustix::io::fcntl_dupfd_cloexec(stdin(), 3) {
        Ok(gate) => UnixStream::from(gate),
        Err(error) => {
            complain(&format_args!("cannot keep the gate: {error}"));
            return ExitCode::from(EXIT_NOT_STARTED);
        }
    };
    let failure = prepare_and_exec(options, guard, &gate);
    // If the guard is gone too there is nobody left to tell.
    if let Err(error) = (&gate).write_all(format!("{}\n", Report::Failed(failure)).as_bytes()) {
        complain(&format_args!("cannot report: {error}"));
    }
    ExitCode::from(EXIT_NOT_STARTED)
}

fn prepare_and_exec(options: &Options, guard: Pid, gate: &UnixStream) -> StartFailure {
    if let Err(error) = prepare(guard, gate) {
        return StartFailure::new(StartStage::Prepare, &error);
    }
    if let Some(Err(error)) = options.cwd.as_ref().map(std::env::set_current_dir) {
        return StartFailure::new(StartStage::Cwd, &error);
    }
    if let Some(mask) = options.umask {
        rustix::process::umask(Mode::from_raw_mode(mask));
    }
    priority::apply(options.priority);
    if let Some(Err(error)) = options.fence.as_ref().map(sandbox::enter) {
        return StartFailure::new(StartStage::Fence, &error);
    }
    let Some((program, args)) = options.command.split_first() else {
        return StartFailure::new(StartStage::Exec, &io::Error::from(io::ErrorKind::InvalidInput));
    };
    #[expect(clippy::disallowed_methods, reason = "this crate is where processes are started")]
    let error = Command::new(program).args(args).exec();
    StartFailure::new(StartStage::Exec, &error)
}

fn prepare(guard: Pid, gate: &UnixStream) -> io::Result<()> {
    dup2_stdin(receive_stdin(gate)?)?;
    setsid()?;
    // The subreaper's own death is the one thing it cannot clean up after.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(guard) {
        return Err(io::Error::other("the guard is gone"));
    }
    default_signals()
}

/// A signal with a handler falls back to its default at exec, one that was inherited as ignored would stay ignored.
fn default_signals() -> io::Result<()> {
    use signal_hook::consts::{
        SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
        SIGXCPU, SIGXFSZ,
    };
    let seen = Arc::new(AtomicBool::new(false));
    for signal in [
        SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
        SIGXCPU, SIGXFSZ,
    ] {
        signal_hook::flag::register(signal, Arc::clone(&seen))?;
    }
    Ok(())
}

fn pass_stdin(gate: &UnixStream) -> io::Result<()> {
    let descriptors = [stdin()];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    sendmsg(gate, &[IoSlice::new(b"i")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive_stdin(gate: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(gate, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut messages = control.drain();
    let received = messages.find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    received.ok_or_else(|| io::Error::other("the guard passed no input"))
}
