//! A server that we start: kept on loopback and behind a key of its own, without pipes, and ended with its last session or
//! with us.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use gembridge_core::model::{Failure, FailureKind, SessionId};
use gembridge_process::{Child, Environment, Handle, Secrets, StopPlan, Writer};
use hyper::Uri;
use tokio::time::{Instant, sleep, timeout};

use super::card::{self, Addressing, Card};
use super::error::Trouble;
use super::http::Server;
use crate::acp::{fence, launch};
use crate::profile::{A2aServer, Runtime};
use crate::setup::DriverSetup;
use crate::workspace::PrivateDir;

/// How often a server that starts is asked whether it is there.
const AGAIN: Duration = Duration::from_millis(500);
/// How long a healthy server takes at most to send its card.
const HEALTHY: Duration = Duration::from_secs(2);
/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

/// Loaded by Node.js before the server.
const CONFINE: &str = include_str!("confine.cjs");
/// Where a shell sends what the server writes, and then becomes it: there is no pipe that could fill or break.
const WITHOUT_PIPES: &str = "exec \"$@\" >>\"$0\" 2>&1 </dev/null";

/// Dropping it ends the server.
pub(super) struct ServerProcess {
    pub server: Arc<Server>,
    pub card: Arc<Card>,
    handle: Handle,
    /// The end of it is the end of the server.
    _input: Writer,
    /// Its own folder; the empty one in it is where sessions without a folder work.
    private: PrivateDir,
    tasks: AtomicU32,
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.handle.end();
    }
}

impl ServerProcess {
    /// Starts one and waits until it answers.
    pub async fn start(setup: &DriverSetup, how: &A2aServer) -> Result<Self, Failure> {
        let agent = &setup.profile.name;
        let private = PrivateDir::create(&setup.private, agent).map_err(|error| launch::no_folder(setup, &error))?;
        let key = format!("{}{}", SessionId::new(), SessionId::new());
        let port_file = private.path().join("port");
        let child = spawn(setup, how, &private, &key, &port_file).await?;
        let Child { stdin, stdout, stderr, handle } = child;
        // Nothing is written to either: the server has the file.
        drop((stdout, stderr));
        let within = Duration::from_secs(setup.profile.limits.start_seconds);
        let (server, card) = ready(setup, &handle, &key, &port_file, within).await?;
        tracing::info!(agent = %agent, pid = handle.pid(), address = %server.address(), "an A2A server runs");
        Ok(Self {
            server: Arc::new(server),
            card: Arc::new(card),
            handle,
            _input: stdin,
            private,
            tasks: AtomicU32::new(0),
        })
    }

    pub fn pid(&self) -> Option<u32> {
        self.handle.pid()
    }

    pub fn is_gone(&self) -> bool {
        self.handle.watch().exit().is_some()
    }

    /// Counts one more task. Whether it is one too many, since no task ever leaves the server's memory.
    pub fn is_used_up(&self, most: u32) -> bool {
        self.tasks.fetch_add(1, Ordering::Relaxed) >= most
    }

    pub async fn is_healthy(&self) -> bool {
        !self.is_gone() && matches!(timeout(HEALTHY, card::fetch(&self.server, Addressing::Known)).await, Ok(Ok(_)))
    }

    /// Where a session works that has no folder of its own.
    pub fn empty_folder(&self) -> PathBuf {
        empty_folder(&self.private)
    }

    /// SIGTERM for its tree, SIGKILL after a grace; resolves when nothing of it is left.
    pub async fn stop(&self) {
        self.handle.end();
        self.handle.stop(StopPlan { after_eof: Duration::ZERO }).await;
    }
}

fn empty_folder(private: &PrivateDir) -> PathBuf {
    private.path().join("empty")
}

async fn spawn(
    setup: &DriverSetup,
    how: &A2aServer,
    private: &PrivateDir,
    key: &str,
    port_file: &Path,
) -> Result<Child, Failure> {
    let mut setup = setup.clone();
    // It starts only under its own name, which the link that npm makes has not.
    setup.program = setup.program.canonicalize().unwrap_or(setup.program);
    let mut launch = launch::launch(&setup, None, private)?;
    launch::write_files(&launch).map_err(|error| launch::no_folder(&setup, &error))?;
    let no_folder = |error: std::io::Error| launch::no_folder(&setup, &error);
    stop_search_for_settings(&empty_folder(private)).map_err(no_folder)?;
    let Runtime::Node = how.runtime;
    let confine = private.path().join("confine.cjs");
    std::fs::write(&confine, CONFINE).map_err(no_folder)?;
    let quoted = confine.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    let variables = [
        (how.port_variable.clone(), "0".to_owned()),
        ("NODE_OPTIONS".to_owned(), format!("--require \"{quoted}\"")),
        ("GEMBRIDGE_A2A_KEY".to_owned(), key.to_owned()),
        ("GEMBRIDGE_A2A_PORT_FILE".to_owned(), port_file.display().to_string()),
    ];
    launch.environment.extend(variables);
    let fence = fence::around(&setup, &launch, private.path())?;
    let mut command = launch::command(&setup, &launch, fence);
    let program = std::mem::replace(&mut command.program, "/bin/sh".into());
    let shell = ["-c".into(), WITHOUT_PIPES.into(), OsString::from(output(&setup)), program];
    command.args.splice(0..0, shell);
    command.limits.grace = GRACE;
    setup.spawner.spawn(command).await.map_err(|error| launch::unstarted(&setup, &error))
}

/// An operator who looks for a fault gets what the server writes.
fn output(setup: &DriverSetup) -> PathBuf {
    let is_debug =
        setup.environment.get("GCS_DEBUG").is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
    if is_debug { setup.cache.join(format!("{}.log", setup.profile.name)) } else { PathBuf::from("/dev/null") }
}

/// A file of variables in the folder itself: without one the server looks for one in all folders above it.
pub(super) fn stop_search_for_settings(folder: &Path) -> std::io::Result<()> {
    let settings = folder.join(".gemini");
    std::fs::create_dir_all(&settings)?;
    std::fs::write(settings.join(".env"), "")
}

async fn ready(
    setup: &DriverSetup,
    handle: &Handle,
    key: &str,
    port_file: &Path,
    within: Duration,
) -> Result<(Server, Card), Failure> {
    let agent = &setup.profile.name;
    let retry_after = Duration::from_secs(5);
    let failed = |why: String| {
        let way_out = format!("set `GCS_DEBUG=1` and read `{}/{agent}.log`", setup.cache.display());
        Failure::new(FailureKind::Unavailable { retry_after }, format!("agent `{agent}` {why}; {way_out}"))
    };
    let deadline = Instant::now() + within;
    loop {
        if let Some(exit) = handle.watch().exit() {
            return Err(failed(format!("ended before it answered ({exit})")));
        }
        if let Some(address) = address(port_file) {
            let known = [("KEY".into(), key.into())].into_iter().collect();
            let server = Server::new(address, Some(key), Secrets::of(&Environment::inherit(known)))
                .map_err(|trouble| trouble.failure(agent))?;
            match timeout(HEALTHY, card::fetch(&server, Addressing::Known)).await {
                Ok(Ok(card)) => return Ok((server, card)),
                Ok(Err(trouble @ Trouble::Unread(_))) => return Err(trouble.failure(agent)),
                Ok(Err(_)) | Err(_) => {}
            }
        }
        if Instant::now() >= deadline {
            handle.end();
            return Err(failed(format!("did not answer within {within:?}")));
        }
        sleep(AGAIN).await;
    }
}

fn address(port_file: &Path) -> Option<Uri> {
    let port: u16 = std::fs::read_to_string(port_file).ok()?.trim().parse().ok()?;
    format!("http://127.0.0.1:{port}").parse().ok()
}
