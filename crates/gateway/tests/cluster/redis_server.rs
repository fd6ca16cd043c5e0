//! A `redis-server` of a test's own, on a loopback port that stays the same when it is started again.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::http::PATIENCE;

pub struct RedisServer {
    folder: TempDir,
    pub address: SocketAddr,
    child: Option<Child>,
}

impl RedisServer {
    pub fn start() -> Self {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut server = Self { folder: tempfile::tempdir().unwrap(), address, child: None };
        server.run();
        server
    }

    /// Begins empty: nothing is saved.
    pub fn run(&mut self) {
        let child = Command::new("redis-server")
            .args(["--port", &self.address.port().to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--dir", self.folder.path().to_str().unwrap()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed by `scripts/setup`");
        self.child = Some(child);
        let deadline = Instant::now() + PATIENCE;
        while !self.try_ask("PING").is_some_and(|answer| answer.contains("PONG")) {
            assert!(Instant::now() < deadline, "redis-server did not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn signal(&self, signal: Signal) {
        let pid = self.child.as_ref().and_then(|child| Pid::from_raw(child.id().cast_signed())).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Gone at once, with everything that it held.
    pub fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// One command in the form that people type it; the answer as it stands on the wire.
    pub fn ask(&self, command: &str) -> String {
        self.try_ask(command).expect("an answer of Redis")
    }

    fn try_ask(&self, command: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        // What it dumps is no text.
        Some(String::from_utf8_lossy(&answer).into_owned())
    }

    /// The value of a field of `INFO`.
    pub fn count(&self, field: &str) -> u64 {
        let info = self.ask("INFO");
        let value = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.and_then(|value| value.trim().parse().ok()).expect("a field of INFO")
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
