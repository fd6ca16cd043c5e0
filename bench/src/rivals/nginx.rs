//! nginx as a plain proxy: no log, kept connections on both sides, no limit on how many requests one carries.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;

use super::{end, free_port, wait_for};
use crate::http::Target;
use crate::measure;

pub struct Nginx {
    process: Child,
    pub target: Target,
    _folder: TempDir,
}

impl Nginx {
    pub fn before(upstream: SocketAddr) -> anyhow::Result<Self> {
        let program = program().context("nginx is not installed; run `scripts/setup bench`")?;
        let folder = tempfile::tempdir()?;
        let port = free_port()?;
        let config = folder.path().join("nginx.conf");
        std::fs::write(&config, settings(port, upstream))?;
        let mut command = Command::new(program);
        command.arg("-p").arg(folder.path()).arg("-c").arg(&config).args(["-e", "stderr"]);
        let mut process = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
        wait_for(port, &mut process, Duration::from_secs(20)).context("nginx")?;
        let target = Target { address: ([127, 0, 0, 1], port).into(), key: "none".to_owned() };
        Ok(Self { process, target, _folder: folder })
    }

    /// CPU time of its workers and their master.
    pub fn cpu(&self) -> anyhow::Result<Duration> {
        measure::tree(self.process.id()).into_iter().map(measure::process_cpu).sum()
    }
}

fn program() -> Option<PathBuf> {
    let path = crate::house::search_path().unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join("nginx")).find(|program| Path::exists(program))
}

/// A worker of root would give its rights up and then not reach its own folder.
fn user() -> &'static str {
    if nix::unistd::geteuid().is_root() { "user root;" } else { "" }
}

fn settings(port: u16, upstream: SocketAddr) -> String {
    let user = user();
    let temporary =
        ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|kind| format!("{kind}_temp_path {kind};"));
    let temporary = temporary.join(" ");
    format!(
        "daemon off; {user} worker_processes auto; pid nginx.pid; error_log stderr crit;
        events {{ worker_connections 8192; }}
        http {{
            access_log off; {temporary}
            keepalive_requests 1000000000;
            upstream bare {{ server {upstream}; keepalive 2048; keepalive_requests 1000000000; }}
            server {{
                listen 127.0.0.1:{port} backlog=4096;
                location / {{
                    proxy_pass http://bare; proxy_http_version 1.1; proxy_set_header Connection \"\";
                    proxy_buffering off;
                }}
            }}
        }}"
    )
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The master takes its workers along if it is asked.
        if let Ok(pid) = i32::try_from(self.process.id()) {
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM).ok();
        }
        for _ in 0..50 {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        end(&mut self.process);
    }
}
