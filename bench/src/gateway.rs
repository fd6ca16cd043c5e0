//! The release binary as anybody starts it: `gembridge serve`, its log written, all folders in one place that goes away.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::house::search_path;
use crate::http::{Connection, Reply, Target};
use crate::measure;

const KEY: &str = "a-key-of-the-benchmark";

/// The defaults, but for how much may happen at once: one client here is a thousand.
pub const CONFIG: &str = r#"
[default]
agent = "demo"

[server]
port = 0

[limits]
requests = 4000000000
turns = 2048
queue = 4096
"#;

pub struct Gateway {
    process: Child,
    pub target: Target,
    folder: TempDir,
}

/// A connection with a session of its own that is there already.
pub struct Seat {
    pub connection: Connection,
    pub session: String,
}

/// A program that was built beside this one.
pub fn built(name: &str) -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name(name);
    anyhow::ensure!(program.exists(), "`{name}` is not built; run `cargo build --release --workspace --bins`");
    Ok(program)
}

impl Gateway {
    pub fn start() -> anyhow::Result<Self> {
        Self::start_in(tempfile::tempdir()?)
    }

    /// Another one in the place of this one, with what it kept.
    pub fn restart(self) -> anyhow::Result<Self> {
        Self::start_in(self.stop()?)
    }

    /// Ends it; what it kept stays.
    pub fn stop(mut self) -> anyhow::Result<TempDir> {
        end(&mut self.process);
        Ok(std::mem::replace(&mut self.folder, tempfile::tempdir()?))
    }

    /// A new key, of rank `user` unless an option says otherwise.
    pub fn key(&self, name: &str, options: &[&str]) -> anyhow::Result<Target> {
        let made = command(self.folder.path())?.args(["keys", "create", name]).args(options).output()?;
        anyhow::ensure!(made.status.success(), "no key: {}", String::from_utf8_lossy(&made.stderr));
        Ok(Target { key: String::from_utf8(made.stdout)?.trim().to_owned(), ..self.target.clone() })
    }

    fn start_in(folder: TempDir) -> anyhow::Result<Self> {
        Self::start_with(folder, CONFIG, &[])
    }

    /// With these settings and variables, in a folder that may have something in it already.
    pub fn start_with(folder: TempDir, settings: &str, variables: &[(&str, String)]) -> anyhow::Result<Self> {
        let config = folder.path().join("config/gembridge");
        std::fs::create_dir_all(&config)?;
        std::fs::write(config.join("gembridge.toml"), settings)?;
        let mut command = command(folder.path())?;
        command.arg("serve").env("BEARER_TOKEN", KEY);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(folder.path().join("log"))?);
        let mut process = command.spawn().context("`gembridge serve` did not start")?;
        let stdout = process.stdout.take().context("`gembridge serve` has no stdout")?;
        let mut banner = String::new();
        BufReader::new(stdout).read_line(&mut banner)?;
        let mut gateway =
            Self { process, target: Target { address: ([127, 0, 0, 1], 0).into(), key: KEY.to_owned() }, folder };
        let (_, address) = banner.trim().rsplit_once("http://").with_context(|| gateway.last_words())?;
        gateway.target.address = address.parse()?;
        Ok(gateway)
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// CPU time of the gateway alone, without guards and agents.
    pub fn cpu(&self) -> anyhow::Result<Duration> {
        measure::process_cpu(self.pid())
    }

    /// Connections whose sessions wait for their next message.
    pub async fn seats(&self, count: usize) -> anyhow::Result<Vec<Seat>> {
        let mut seats = Vec::with_capacity(count);
        while seats.len() < count {
            let mut tasks = JoinSet::new();
            for _ in seats.len()..count.min(seats.len() + 50) {
                let target = self.target.clone();
                tasks.spawn(async move { Seat::take(&target).await });
            }
            while let Some(seat) = tasks.join_next().await {
                seats.push(seat??);
            }
        }
        Ok(seats)
    }

    /// The end of its log, where something went wrong.
    pub fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let tail: Vec<&str> = log.lines().rev().take(5).collect();
        format!("`gembridge serve` said: {}", tail.into_iter().rev().collect::<Vec<_>>().join(" | "))
    }
}

/// The release binary, with all its folders in this one.
fn command(folder: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new(built("gembridge")?);
    command.env_clear().env("PATH", search_path()?).env("HOME", folder);
    for name in ["CONFIG", "STATE", "CACHE"] {
        command.env(format!("XDG_{name}_HOME"), folder.join(name.to_lowercase()));
    }
    Ok(command)
}

impl Seat {
    async fn take(target: &Target) -> anyhow::Result<Self> {
        let mut connection = target.connect().await?;
        let head = connection.ask(&target.chat("chunks 1 size 20", Reply::Whole, None)).await?;
        let body = connection.text(&head).await?;
        anyhow::ensure!(head.status == 200, "status {}: {}", head.status, String::from_utf8_lossy(&body));
        let session = head.session.context("the answer names no session")?;
        Ok(Self { connection, session })
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// Asks it first, so that it takes its agents along. One that has ended already is left alone.
fn end(process: &mut Child) {
    if !matches!(process.try_wait(), Ok(None)) {
        return;
    }
    if let Ok(pid) = i32::try_from(process.id()) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM).ok();
    }
    for _ in 0..100 {
        if !matches!(process.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    process.kill().ok();
    process.wait().ok();
}
