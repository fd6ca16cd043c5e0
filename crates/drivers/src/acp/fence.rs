//! What stands around an agent's process: nothing, a fence that keeps it from writing elsewhere, or one that leaves a guest's process
//! its own folders, its program and its libraries.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gembridge_core::model::{Failure, FailureKind};
use gembridge_process::{Reads, Sandbox};

use crate::detect::installation;
use crate::profile::{self, Launch};
use crate::setup::{Audience, DriverSetup, GuestFence, Home};
use crate::workspace::PrivateDir;

/// The folder that a process has to itself, which goes with it, and the fence around the process.
pub(super) struct Enclosure {
    pub folder: PrivateDir,
    pub fence: Option<Sandbox>,
    /// Where the sessions work that need no folder of their own, once there is one.
    pub chat: OnceLock<PathBuf>,
}

impl Enclosure {
    /// Made for the first session that works there.
    pub fn chat_folder(&self) -> io::Result<PathBuf> {
        if let Some(path) = self.chat.get() {
            return Ok(path.clone());
        }
        let path = self.folder.path().join("chat");
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
        Ok(self.chat.get_or_init(|| path).clone())
    }
}

/// The fence around a process, whose own folder is `private`.
pub(crate) fn around(setup: &DriverSetup, launch: &Launch, private: &Path) -> Result<Option<Sandbox>, Failure> {
    let mut own = vec![launch.cwd.clone(), private.to_owned()];
    if let Home::Lasting(path) = &setup.home {
        own.push(path.clone());
    }
    match (setup.audience, setup.guest_fence) {
        (Audience::Guests, GuestFence::Landlock) => guests(setup, launch, own).map(Some),
        _ if setup.sandbox == profile::Sandbox::Landlock => {
            own.push(setup.cache.clone());
            Ok(Some(Sandbox { reads: Reads::Anything, writable: own }))
        }
        _ => Ok(None),
    }
}

/// The cache is the operator's too: what one process compiles into it, another would run. So guests read it only.
fn guests(setup: &DriverSetup, launch: &Launch, own: Vec<PathBuf>) -> Result<Sandbox, Failure> {
    let path = launch.environment.get("PATH").map(String::as_str).unwrap_or_default();
    let reach = &launch.reach;
    for named in reach.readable.iter().chain(&reach.writable) {
        if holds(named, &setup.private) {
            let (agent, named) = (&setup.profile.name, named.display());
            let text = format!("agent `{agent}` cannot serve guests: `{named}` holds gembridge's own files; name less");
            return Err(Failure::new(FailureKind::Unsupported, text));
        }
    }
    // A script that an interpreter is given by a full path belongs to the agent as its program does.
    let scripts = launch.args.iter().map(Path::new).filter(|arg| arg.is_absolute() && arg.is_file());
    let programs = [launch.program.as_path()].into_iter().chain(scripts);
    let programs = programs.chain(reach.programs.iter().map(PathBuf::as_path)).chain(setup.shim.as_deref());
    let installed = programs.flat_map(|program| installation(program, path));
    let mut readable: Vec<PathBuf> = installed.filter(|found| !holds(found, &setup.private)).collect();
    readable.extend(reach.readable.iter().cloned());
    readable.push(setup.cache.clone());
    readable.sort_unstable();
    readable.dedup();
    Ok(Sandbox {
        reads: Reads::Only(readable),
        writable: own.into_iter().chain(reach.writable.iter().cloned()).collect(),
    })
}

/// Whether `inner` is in `outer`, links followed.
fn holds(outer: &Path, inner: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(inner).starts_with(real(outer))
}
