//! A terminal for the binary, whose far end the test holds.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Starts the command as the leader of a session with a terminal of its own. `setsid` may be given more flags.
pub fn start(command: &Command, kind: &str, flags: &[&str]) -> (Child, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let end = || Stdio::from(OwnedFd::from(slave.try_clone().unwrap()));
    let child = Command::new("/usr/bin/setsid")
        .arg("--ctty")
        .args(flags)
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("TERM", kind)
        .current_dir(command.get_current_dir().unwrap())
        .stdin(end())
        .stdout(end())
        .stderr(end())
        .spawn()
        .unwrap();
    (child, File::from(master))
}
