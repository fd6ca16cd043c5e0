//! The optional write fence (Landlock): a fenced child writes to the named folders and nowhere else.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus,
};

/// The folders a child may write to. Reading stays free.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sandbox {
    pub writable: Vec<PathBuf>,
}

/// What this kernel can do for a [`Sandbox`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// Every kind of write is fenced.
    Full,
    /// Truncating a file outside by path, or moving files between the writable folders, is not governed.
    Partial,
    /// No fence: a command that asks for one is refused.
    Unavailable,
}

/// The rights that stand for "write": the newest set that is about files rather than devices or sockets.
const FENCED: ABI = ABI::V3;

/// Devices that programs write to without changing anything.
const HARMLESS_DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts"];

/// Asks the kernel, changes nothing.
pub fn support() -> Support {
    let supported = |abi| {
        Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_write(abi))
            .and_then(Ruleset::create)
            .is_ok()
    };
    if supported(FENCED) {
        Support::Full
    } else if supported(ABI::V1) {
        Support::Partial
    } else {
        Support::Unavailable
    }
}

/// Fences the calling process and all that it will start, for good.
pub(crate) fn enter(sandbox: &Sandbox) -> io::Result<()> {
    let write = AccessFs::from_write(FENCED);
    let mut rules = Ruleset::default().handle_access(write).and_then(Ruleset::create).map_err(refused)?;
    for folder in &sandbox.writable {
        let opened = PathFd::new(folder).map_err(|error| named(folder.display(), error))?;
        rules = rules.add_rule(PathBeneath::new(opened, write)).map_err(refused)?;
    }
    for device in HARMLESS_DEVICES {
        // A machine without one of these has nothing to allow.
        if let Ok(opened) = PathFd::new(device) {
            let allowed = AccessFs::WriteFile | AccessFs::Truncate;
            rules = rules.add_rule(PathBeneath::new(opened, allowed)).map_err(refused)?;
        }
    }
    match rules.restrict_self().map_err(refused)?.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(io::Error::from(rustix::io::Errno::OPNOTSUPP)),
    }
}

fn refused(error: RulesetError) -> io::Error {
    io::Error::other(error)
}

fn named(path: impl std::fmt::Display, error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("`{path}`: {error}"))
}
