//! The guard's life: start the command, sleep in `poll`, end the tree, leave with the command's status.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::process::{Pid, Resource, Rlimit, WaitStatus, getpid, set_child_subreaper, setrlimit, setsid, umask};
use rustix::stdio::{dup2_stdout, stdin};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::report::MAX_REPORT;
use super::tree::{self, Collected};
use super::{EXIT_NOT_STARTED, Options, Report, StartFailure, StartStage, complain, launch};
use crate::child::Exit;

/// Between two rounds of killing: a fork that slipped through is met by the next one.
const KILL_ROUND: Duration = Duration::from_millis(10);

/// What cannot be killed in this time (a setuid program, an uninterruptible read) is left to the system.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(options: &Options) -> ExitCode {
    let started = settle_in().and_then(|signals| {
        let (command, gate) = launch::start(options)?;
        Ok(Guard { signals, command, gate: Some(gate), grace: options.grace, phase: Phase::Watching, exit: None })
    });
    let mut guard = match started {
        Ok(guard) => guard,
        Err(error) => {
            tell_owner(&Report::Failed(StartFailure::new(StartStage::Prepare, &error)));
            return ExitCode::from(EXIT_NOT_STARTED);
        }
    };
    let_go_of_the_commands_files();
    if let Err(error) = guard.watch() {
        complain(&error);
        // Whatever broke, nothing of the tree may outlive its guard.
        if let Err(error) = tree::kill() {
            complain(&format_args!("cannot kill the tree: {error}"));
        }
    }
    guard.leave()
}

/// Makes this process the root of a tree of its own. Inherited descriptors go first: a listener or a lock of the
/// owner's must not live on in here.
fn settle_in() -> io::Result<Signals> {
    close_inherited()?;
    // Fails only for a process group's leader, which is what it would make of us.
    match setsid() {
        Ok(_) | Err(Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    set_child_subreaper(Some(getpid()))?;
    umask(Mode::RWXG | Mode::RWXO);
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    // Only so that `ps` shows a name instead of `exe`.
    if let Err(error) = fs::write("/proc/self/comm", "gembridge-guard") {
        complain(&format_args!("cannot set the process name: {error}"));
    }
    Signals::listen()
}

fn close_inherited() -> io::Result<()> {
    let listed: Vec<i32> = fs::read_dir("/proc/self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|descriptor| *descriptor > 2)
        .collect();
    for descriptor in listed {
        // The listing itself had one, closed by now.
        match nix::unistd::close(descriptor) {
            Ok(()) | Err(nix::errno::Errno::EBADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The command's pipes are the command's: an owner sees the end of its output when the tree closed it.
fn let_go_of_the_commands_files() {
    let replaced = File::options().write(true).open("/dev/null").and_then(|null| Ok(dup2_stdout(null)?));
    if let Err(error) = replaced.and_then(|()| std::env::set_current_dir("/")) {
        complain(&format_args!("cannot let go of output and folder: {error}"));
    }
}

fn tell_owner(report: &Report) {
    let line = format!("{report}\n");
    // The owner may be gone, deaf, or a terminal. None of that is the command's concern.
    match rustix::net::send(stdin(), line.as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(_) | Err(Errno::PIPE | Errno::AGAIN | Errno::NOTSOCK | Errno::CONNRESET) => {}
        Err(error) => complain(&format_args!("cannot report `{report}`: {error}")),
    }
}

/// Signals as bytes in sockets, so that `poll` sees them without a race.
struct Signals {
    child_ended: UnixStream,
    end_requested: UnixStream,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self { child_ended: Self::socket(&[SIGCHLD])?, end_requested: Self::socket(&[SIGTERM, SIGINT, SIGHUP])? })
    }

    fn socket(signals: &[i32]) -> io::Result<UnixStream> {
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        for signal in signals {
            signal_hook::low_level::pipe::register(*signal, write.try_clone()?)?;
        }
        Ok(read)
    }
}

enum Phase {
    /// The command runs and its owner is there.
    Watching,
    /// Every descendant was sent SIGTERM; SIGKILL follows.
    Asked { kill_at: Instant },
    /// SIGKILL in rounds until nobody is left.
    Killing { give_up_at: Instant },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    OwnerGone,
    EndRequested,
    ChildEnded,
    GateMoved,
}

struct Guard {
    signals: Signals,
    command: Pid,
    /// Open until the launch stage has become the command, or failed to.
    gate: Option<UnixStream>,
    grace: Duration,
    phase: Phase,
    exit: Option<Exit>,
}

impl Guard {
    fn watch(&mut self) -> io::Result<()> {
        loop {
            if self.collect()? == Tree::Empty || self.advance(Instant::now())? == Patience::Over {
                return Ok(());
            }
            for event in self.sleep()? {
                match event {
                    Event::OwnerGone => self.end_tree()?,
                    Event::EndRequested => {
                        drain(&self.signals.end_requested)?;
                        self.end_tree_sooner()?;
                    }
                    Event::ChildEnded => drain(&self.signals.child_ended)?,
                    Event::GateMoved => self.read_gate()?,
                }
            }
        }
    }

    fn collect(&mut self) -> io::Result<Tree> {
        loop {
            match tree::collect_one()? {
                Collected::Ended(pid, status) if pid == self.command => {
                    // The start is reported before the end, whatever order they were noticed in.
                    self.read_gate()?;
                    let exit = exit_of(status);
                    self.exit = Some(exit);
                    tell_owner(&Report::Exited(exit));
                    self.end_tree()?;
                }
                Collected::Ended(..) => {}
                Collected::NothingYet => return Ok(Tree::Alive),
                Collected::NobodyLeft => return Ok(Tree::Empty),
            }
        }
    }

    fn advance(&mut self, now: Instant) -> io::Result<Patience> {
        if let Phase::Asked { kill_at } = self.phase
            && now >= kill_at
        {
            self.phase = Phase::Killing { give_up_at: now + KILL_PATIENCE };
        }
        if let Phase::Killing { give_up_at } = self.phase {
            if now >= give_up_at {
                return Ok(Patience::Over);
            }
            tree::kill()?;
        }
        Ok(Patience::Left)
    }

    fn end_tree(&mut self) -> io::Result<()> {
        if let Phase::Watching = self.phase {
            self.phase = Phase::Asked { kill_at: Instant::now() + self.grace };
            tree::ask_to_end()?;
        }
        Ok(())
    }

    /// A second request means that whoever asks is done waiting.
    fn end_tree_sooner(&mut self) -> io::Result<()> {
        if let Phase::Asked { kill_at } = &mut self.phase {
            *kill_at = Instant::now();
        }
        self.end_tree()
    }

    fn read_gate(&mut self) -> io::Result<()> {
        let Some(gate) = &mut self.gate else { return Ok(()) };
        let mut line = [0; MAX_REPORT];
        let length = match gate.read(&mut line) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        self.gate = None;
        let failure = line[..length].strip_suffix(b"\n").and_then(Report::parse);
        let started = || Report::Started { pid: self.command.as_raw_nonzero().get().unsigned_abs() };
        tell_owner(&failure.unwrap_or_else(started));
        Ok(())
    }

    fn sleep(&self) -> io::Result<Vec<Event>> {
        let now = Instant::now();
        let timeout = match self.phase {
            Phase::Watching => None,
            Phase::Asked { kill_at } => Some(kill_at.saturating_duration_since(now)),
            Phase::Killing { .. } => Some(KILL_ROUND),
        };
        let timeout = timeout.and_then(|wait| Timespec::try_from(wait).ok());
        let stdin = stdin();
        let mut watched = vec![
            (PollFd::from_borrowed_fd(self.signals.child_ended.as_fd(), PollFlags::IN), Event::ChildEnded),
            (PollFd::from_borrowed_fd(self.signals.end_requested.as_fd(), PollFlags::IN), Event::EndRequested),
        ];
        if let Some(gate) = &self.gate {
            watched.push((PollFd::from_borrowed_fd(gate.as_fd(), PollFlags::IN), Event::GateMoved));
        }
        if let Phase::Watching = self.phase {
            // Asked for nothing, a socket still tells when its other end is gone. What is sent over it is the command's.
            watched.push((PollFd::from_borrowed_fd(stdin, PollFlags::empty()), Event::OwnerGone));
        }
        let (mut descriptors, events): (Vec<_>, Vec<_>) = watched.into_iter().unzip();
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let moved = descriptors.iter().zip(events).filter(|(descriptor, _)| !descriptor.revents().is_empty());
        Ok(moved.map(|(_, event)| event).collect())
    }

    /// Ends this process the way the command ended.
    fn leave(self) -> ExitCode {
        match self.exit {
            Some(Exit::Code(code)) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
            Some(Exit::Signal(signal)) => {
                if let Err(error) = signal_hook::low_level::emulate_default_handler(signal) {
                    complain(&format_args!("cannot repeat signal {signal}: {error}"));
                }
                ExitCode::from(128_u8.wrapping_add(u8::try_from(signal).unwrap_or(0)))
            }
            None => ExitCode::FAILURE,
        }
    }
}

#[derive(PartialEq, Eq)]
enum Tree {
    Alive,
    Empty,
}

#[derive(PartialEq, Eq)]
enum Patience {
    Left,
    Over,
}

fn exit_of(status: WaitStatus) -> Exit {
    match status.terminating_signal() {
        Some(signal) => Exit::Signal(signal),
        None => Exit::Code(status.exit_status().unwrap_or(-1)),
    }
}

fn drain(mut socket: &UnixStream) -> io::Result<()> {
    let mut bytes = [0; 64];
    loop {
        match socket.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
