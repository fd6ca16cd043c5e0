//! Servers to be held against, each a process of its own: this binary by another first word, nginx, `LiteLLM`, acp2api.

mod acp2api;
mod litellm;
mod nginx;
mod relay;
pub mod server;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

pub use acp2api::Acp2Api;
pub use litellm::LiteLlm;
pub use nginx::Nginx;

use crate::http::Target;

/// A server of this binary.
pub struct Rival {
    process: Child,
    pub target: Target,
}

impl Rival {
    pub fn start(word: &str) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut process = command.arg(word).stdout(Stdio::piped()).spawn()?;
        let stdout = process.stdout.take().context("a server without stdout")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let target = Target { address: line.trim().parse()?, key: "none".to_owned() };
        Ok(Self { process, target })
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// It may have ended by itself.
fn end(process: &mut Child) {
    process.kill().ok();
    process.wait().ok();
}

/// A port that nobody uses now.
fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Waits until somebody listens there.
fn wait_for(port: u16, process: &mut Child, patience: std::time::Duration) -> anyhow::Result<()> {
    let deadline = std::time::Instant::now() + patience;
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        if let Some(status) = process.try_wait()? {
            anyhow::bail!("it ended by itself: {status}");
        }
        anyhow::ensure!(std::time::Instant::now() < deadline, "it does not listen within {patience:?}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Ok(())
}
