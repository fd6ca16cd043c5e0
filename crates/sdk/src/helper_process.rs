//! The processes beside a program that uses agents: a guard for each agent, the demo agent, and the stand-in of the tool
//! server for agents that take none over HTTP. All three are this very program, started again.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use gembridge_drivers::detect::{Disk, Probe as _};
use gembridge_drivers::profile::Environment;
use gembridge_process::{GuardProgram, guard};

use crate::error::BuildError;

/// By this name the guard is started, whatever the program is called.
const GUARD: &str = "gembridge-guard";
const DEMO: &str = "demo-agent";
const SHIM: &str = "mcp-shim";
/// Set for the demo agent, so that a program may have a command of that name itself.
pub(crate) const MARK: (&str, &str) = ("GEMBRIDGE_SDK_HELPER", DEMO);
/// Where the stand-in finds the tool server, and what lets it in.
const URL: &str = "GEMBRIDGE_MCP_URL";
const TOKEN: &str = "GEMBRIDGE_MCP_TOKEN";

/// Whether this program can be started again as its own helper.
static IS_OWN_HELPER: AtomicBool = AtomicBool::new(false);

/// Call this first thing in `main`, before a runtime, a logger or an argument parser exists.
///
/// Every agent runs below a small guard process, which ends the agent with all that it started when this program is gone,
/// however it went. The guard is this program, started again: a process that was started as a guard does its work in
/// here and exits, in every other this returns at once. A program without the call needs the `gembridge` binary on its
/// `PATH`, or one that is named by [`helper_program`](crate::AdapterBuilder::helper_program).
///
/// The examples of [the crate](crate) show where it stands.
pub fn run_helper() {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    let first = words.next().unwrap_or_default();
    if let Some(code) = helped(&name, &first, words) {
        exit(code);
    }
    IS_OWN_HELPER.store(true, Ordering::Relaxed);
}

/// `None`: this process is the program itself.
fn helped(name: &OsStr, first: &OsStr, rest: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    match first.to_str()? {
        guard::COMMAND if name == GUARD => Some(guard::main(rest)),
        DEMO if variable(MARK.0).is_some() => {
            Some(gembridge_demo::main(rest.map(|word| word.to_string_lossy().into_owned())))
        }
        SHIM => {
            let (url, token) = (variable(URL)?, variable(TOKEN)?);
            Some(match gembridge_tools::shim::run_on_stdio(&url, &token) {
                Ok(()) => ExitCode::SUCCESS,
                Err(problem) => {
                    eprintln!("{SHIM}: {problem}");
                    ExitCode::FAILURE
                }
            })
        }
        _ => None,
    }
}

#[expect(clippy::disallowed_methods, reason = "what a helper is told comes to it by its environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// `ExitCode` can only be returned from `main`, which is not ours.
fn exit(code: ExitCode) -> ! {
    let code = (0..=255_u8).find(|number| ExitCode::from(*number) == code);
    std::process::exit(code.map_or(1, i32::from))
}

/// The program that helpers are started from.
#[derive(Clone, Debug)]
pub(crate) struct HelperProgram {
    pub guard: GuardProgram,
    pub path: PathBuf,
}

impl HelperProgram {
    /// What was named, this program, or `gembridge` beside it or on the `PATH`.
    pub(crate) fn find(named: Option<&Path>, environment: &Environment) -> Result<Self, BuildError> {
        let at = |path: PathBuf| Self { guard: GuardProgram::at(&path), path };
        if let Some(named) = named {
            return Ok(at(named.to_owned()));
        }
        let own = std::env::current_exe().ok();
        if IS_OWN_HELPER.load(Ordering::Relaxed) {
            let path = own.unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
            return Ok(Self { guard: GuardProgram::this_binary(), path });
        }
        let beside = own.as_deref().and_then(Path::parent).map(Path::to_owned);
        let on_path = environment.get("PATH").map(|path| std::env::split_paths(path).collect::<Vec<_>>());
        let folders = beside.into_iter().chain(on_path.unwrap_or_default());
        let found = folders.map(|folder| folder.join("gembridge")).find(|path| Disk.is_executable(path));
        found.map(at).ok_or(BuildError::NoHelper)
    }
}
