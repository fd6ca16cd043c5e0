//! The processes that `fork` and `fork-setsid` leave behind for the gateway to find.

use std::{
    env,
    fs::File,
    io::{self, Read, Write},
    os::fd::AsFd,
    process::{Command, Stdio},
    thread,
};

use super::{
    mode::{Mode, Offspring},
    options::Options,
};

/// Starts what the modes ask for and returns once all of it runs.
pub fn start(options: &Options) -> io::Result<()> {
    let wanted = [(Mode::Fork, Offspring::Child, 1), (Mode::ForkSetsid, Offspring::SessionLeader, 2)];
    for (mode, kind, processes_to_come) in wanted {
        if options.has(&mode) {
            let (mut ready, report) = io::pipe()?;
            spawn(options, kind, Stdio::from(report))?;
            ready.read_exact(&mut vec![0; processes_to_come])?;
        }
    }
    Ok(())
}

/// The life of such a process: it shares the agent's stdout and stderr and ends only by a signal.
pub fn live(options: &Options, kind: Offspring) -> io::Result<()> {
    // Its stdin is the pipe on which the agent waits to hear that it is up.
    let report = io::stdin().as_fd().try_clone_to_owned()?;
    match kind {
        Offspring::Child => {}
        Offspring::SessionLeader => {
            rustix::process::setsid()?;
            spawn(options, Offspring::DaemonParent, Stdio::from(report.try_clone()?))?;
        }
        Offspring::DaemonParent => return spawn(options, Offspring::Daemon, Stdio::from(report)),
        Offspring::Daemon => {
            rustix::process::setsid()?;
        }
    }
    File::from(report).write_all(b"r")?;
    loop {
        thread::park();
    }
}

/// Nobody waits for what this starts: that is the fault it stands for.
fn spawn(options: &Options, kind: Offspring, stdin: Stdio) -> io::Result<()> {
    let mut command = Command::new(env::current_exe()?);
    command.arg("--mode").arg(kind.spelled()).stdin(stdin);
    if options.has(&Mode::IgnoreSigterm) {
        command.arg("--mode").arg("ignore-sigterm");
    }
    if let Some(tag) = &options.tag {
        command.arg("--tag").arg(tag);
    }
    command.spawn()?;
    Ok(())
}
