//! The machine and what gembridge keeps on it: files and their modes, Landlock, disk, limits, what killed runs left.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use gembridge_process::sandbox::{self, Support};
use rustix::process::{Resource, getrlimit};

use super::Check;
use crate::config::trust::Trust;
use crate::config::{Config, ConfigFile, Folders};
use crate::keys::{KeyFile, first_key_path};
use crate::origins::OriginFile;
use crate::stale_cleanup;

const LITTLE_SPACE: u64 = 1 << 30;
const NO_SPACE: u64 = 64 << 20;

/// Below this, a handful of agents and clients already fail.
const FEW_FILES: u64 = 1024;

pub fn settings_file(config: &Config) -> Check {
    match &config.file {
        ConfigFile::Read(path) => Check::ok("settings", path.display().to_string()),
        ConfigFile::Missing(path) => Check::ok("settings", format!("no {}; defaults apply", path.display())),
    }
}

/// Folders of ours, and files in them that hold secrets, are nobody else's to read.
pub fn private_paths(config: &Config) -> Vec<Check> {
    let folders = [&config.folders.config, &config.folders.state, &config.folders.cache];
    let files = [
        config.file.path().to_owned(),
        config.folders.config.join(".env"),
        KeyFile::path(&config.folders),
        first_key_path(&config.folders),
    ];
    let open_folders = folders.into_iter().filter(|folder| is_open(folder)).map(|folder| (folder.as_path(), "700"));
    let open_files = files.iter().filter(|file| is_open(file)).map(|file| (file.as_path(), "600"));
    let open: Vec<_> = open_folders.chain(open_files).collect();
    if open.is_empty() {
        return vec![Check::ok("private", "folders and files are yours alone")];
    }
    let check = |(path, mode): (&Path, &str)| {
        let path = path.display();
        Check::warn("private", format!("{path} can be read by others"), format!("run `chmod {mode} {path}`"))
    };
    open.into_iter().map(check).collect()
}

fn is_open(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

pub fn trust(config: &Config) -> Check {
    let trust = match Trust::load(&config.folders.config) {
        Ok(trust) => trust,
        Err(error) => {
            return Check::fail("trust", error.to_string(), "mend the file, or remove it and trust the folders again");
        }
    };
    match trust.folders().iter().find(|folder| !folder.is_dir()) {
        Some(gone) => {
            let gone = gone.display();
            Check::warn(
                "trust",
                format!("trusted folder {gone} is gone"),
                format!("run `gembridge trust remove {gone}`"),
            )
        }
        None if trust.folders().is_empty() => Check::ok("trust", "no folder is trusted; agents chat, and work nowhere"),
        None => Check::ok("trust", format!("agents may work in {} folders", trust.folders().len())),
    }
}

/// Who gets in: keys, and pages beyond this machine.
pub fn admission(config: &Config) -> Check {
    let read = KeyFile::load(&config.folders).and_then(|keys| Ok((keys, OriginFile::load(&config.folders)?)));
    let (keys, origins) = match read {
        Ok(read) => read,
        Err(error) => {
            return Check::fail(
                "keys",
                error.to_string(),
                "mend the file, or remove it and make keys and origins again",
            );
        }
    };
    if config.settings.server.any_extension.0 {
        return Check::warn(
            "keys",
            "`server.any_extension` lets every browser extension call, now and later",
            "allow single ones: `gembridge origins allow chrome-extension://<the full id>`",
        );
    }
    let told = format!(
        "{} keys; pages of {} origins beyond this machine may call",
        keys.entries().len(),
        origins.origins().len()
    );
    Check::ok("keys", told)
}

/// Agents find the tools of clients on a free port of this machine.
pub fn client_tools() -> Check {
    match std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)) {
        Ok(_) => Check::ok("client tools", "agents can reach them on 127.0.0.1"),
        Err(error) => Check::fail(
            "client tools",
            format!("no port of 127.0.0.1 can be opened: {error}"),
            "bring the loopback interface up: `ip link set lo up`",
        ),
    }
}

pub fn landlock() -> Check {
    fence(sandbox::support())
}

fn fence(support: Support) -> Check {
    match support {
        Support::Full => Check::ok("landlock", "the kernel can keep an agent to its own files and processes"),
        Support::Files => Check::warn(
            "landlock",
            "the kernel can keep an agent to its own files, but not from signals to your other processes",
            "update to Linux 6.12 or newer",
        ),
        Support::Partial => Check::warn(
            "landlock",
            "the kernel fences an agent's files in part: not enough for guests",
            "update to Linux 6.2 or newer",
        ),
        Support::Unavailable => Check::warn(
            "landlock",
            "the kernel cannot fence an agent's files",
            "use Linux 6.2 or newer with Landlock on, or do without the fence",
        ),
    }
}

pub fn free_space(state: &Path) -> Check {
    // The folder may not be there yet; its disk is that of its nearest parent.
    let existing = state.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    match rustix::fs::statvfs(existing) {
        Ok(disk) => space(existing, disk.f_bavail.saturating_mul(disk.f_frsize)),
        Err(error) => Check::warn(
            "disk",
            format!("cannot ask {} for its free space: {error}", existing.display()),
            "look with `df -h`",
        ),
    }
}

fn space(folder: &Path, free: u64) -> Check {
    let what = format!("{} MB free for {}", free >> 20, folder.display());
    match free {
        0..NO_SPACE => Check::fail("disk", what, "make room: sessions cannot be kept"),
        NO_SPACE..LITTLE_SPACE => Check::warn("disk", what, "make room before it runs out"),
        _ => Check::ok("disk", what),
    }
}

pub fn open_files() -> Check {
    files(getrlimit(Resource::Nofile).current)
}

fn files(limit: Option<u64>) -> Check {
    match limit {
        Some(limit) if limit < FEW_FILES => Check::warn(
            "open files",
            format!("at most {limit} files can be open"),
            "run `ulimit -n 4096` before starting",
        ),
        Some(limit) => Check::ok("open files", format!("up to {limit}")),
        None => Check::ok("open files", "without a limit"),
    }
}

pub fn stale_cleanup(folders: &Folders) -> Check {
    let cleared = stale_cleanup::clear(folders);
    match cleared {
        stale_cleanup::Cleared { stubborn: 0, processes: 0, folders: 0 } => {
            Check::ok("leftovers", "none of earlier runs")
        }
        stale_cleanup::Cleared { stubborn: 0, processes, folders } => Check::ok(
            "leftovers",
            format!("cleared {processes} processes and {folders} folders of runs that were killed"),
        ),
        stale_cleanup::Cleared { stubborn, .. } => Check::warn(
            "leftovers",
            format!("{stubborn} processes of killed runs do not end"),
            "look for them with `ps -e f | grep gembridge`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn little_space_warns_and_none_fails() {
        for (free, status) in [(10 << 20, Status::Fail), (100 << 20, Status::Warn), (2 << 30, Status::Ok)] {
            assert_eq!(space(Path::new("/s"), free).status, status);
        }
    }

    #[test]
    fn few_open_files_warn() {
        assert_eq!(files(Some(64)).status, Status::Warn);
        assert_eq!(files(Some(4096)).status, Status::Ok);
        assert_eq!(files(None).status, Status::Ok);
    }
}
