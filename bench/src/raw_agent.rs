//! The demo agent on bare pipes, many sessions at once: what a prompt costs before anybody is in between.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use memchr::memmem;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::gateway::built;

/// One client, one session: it reads the pipe itself, so that no task stands between.
pub struct Alone {
    stdin: ChildStdin,
    lines: Lines,
    session: String,
    calls: u64,
    _process: Child,
}

/// Many sessions of one process, with a task that hands out the answers.
pub struct Shared {
    stdin: tokio::sync::Mutex<ChildStdin>,
    waiting: Arc<Mutex<HashMap<u64, oneshot::Sender<()>>>>,
    sessions: Vec<String>,
    _reader: JoinSet<()>,
    _process: Child,
}

impl Alone {
    pub async fn start() -> anyhow::Result<Self> {
        Self::with_tools(json!([])).await
    }

    /// The same with these tool servers.
    pub async fn with_tools(servers: Value) -> anyhow::Result<Self> {
        let (process, mut stdin, mut lines) = start().await?;
        let session = open(&mut stdin, &mut lines, servers).await?;
        Ok(Self { stdin, lines, session, calls: FIRST, _process: process })
    }

    /// From the prompt to the end of its turn.
    pub async fn turn(&mut self, prompt: &str) -> anyhow::Result<Duration> {
        self.calls += 1;
        let line = request(self.calls, &self.session, prompt);
        let since = Instant::now();
        self.stdin.write_all(&line).await?;
        loop {
            if answered(&self.lines.next().await?) == Some(self.calls) {
                return Ok(since.elapsed());
            }
        }
    }
}

impl Shared {
    pub async fn start(sessions: usize) -> anyhow::Result<Arc<Self>> {
        let (process, mut stdin, mut lines) = start().await?;
        let mut names = Vec::new();
        for _ in 0..sessions {
            names.push(open(&mut stdin, &mut lines, json!([])).await?);
        }
        let waiting = Arc::new(Mutex::new(HashMap::<u64, oneshot::Sender<()>>::new()));
        let mut reader = JoinSet::new();
        let table = Arc::clone(&waiting);
        reader.spawn(async move {
            while let Ok(line) = lines.next().await {
                let Some(id) = answered(&line) else { continue };
                if let Some(waiter) = table.lock().unwrap_or_else(PoisonError::into_inner).remove(&id) {
                    // Whoever waited may have given up.
                    waiter.send(()).ok();
                }
            }
        });
        let stdin = tokio::sync::Mutex::new(stdin);
        Ok(Arc::new(Self { stdin, waiting, sessions: names, _reader: reader, _process: process }))
    }

    pub async fn turn(&self, session: usize, call: u64, prompt: &str) -> anyhow::Result<()> {
        let id = FIRST + call * 10_000 + u64::try_from(session)?;
        let line = request(id, &self.sessions[session], prompt);
        let (waiter, answer) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, waiter);
        self.stdin.lock().await.write_all(&line).await?;
        answer.await.context("the demo agent ended")
    }
}

/// The numbers of prompts begin here; those before belong to the opening.
const FIRST: u64 = 1_000_000;

struct Lines {
    stdout: ChildStdout,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Lines {
    async fn next(&mut self) -> anyhow::Result<Vec<u8>> {
        loop {
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
                let line = self.buffer[self.start..self.start + length].to_vec();
                self.start += length + 1;
                return Ok(line);
            }
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            if self.end == self.buffer.len() {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
            let read = self.stdout.read(&mut self.buffer[self.end..]).await?;
            anyhow::ensure!(read > 0, "the demo agent ended");
            self.end += read;
        }
    }
}

async fn start() -> anyhow::Result<(Child, ChildStdin, Lines)> {
    let mut command = Command::new(built("gembridge")?);
    command.arg("demo-agent").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut process = command.spawn()?;
    let mut stdin = process.stdin.take().context("no stdin")?;
    let stdout = process.stdout.take().context("no stdout")?;
    let mut lines = Lines { stdout, buffer: vec![0; 64 * 1024], start: 0, end: 0 };
    call(&mut stdin, &mut lines, "initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).await?;
    Ok((process, stdin, lines))
}

async fn open(stdin: &mut ChildStdin, lines: &mut Lines, servers: Value) -> anyhow::Result<String> {
    let opened = call(stdin, lines, "session/new", json!({"cwd": "/", "mcpServers": servers})).await?;
    Ok(opened["result"]["sessionId"].as_str().context("no session")?.to_owned())
}

async fn call(stdin: &mut ChildStdin, lines: &mut Lines, method: &str, params: Value) -> anyhow::Result<Value> {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    stdin.write_all(format!("{message}\n").as_bytes()).await?;
    loop {
        let message: Value = serde_json::from_slice(&lines.next().await?)?;
        if message["id"] == 1 {
            return Ok(message);
        }
    }
}

fn request(id: u64, session: &str, prompt: &str) -> Vec<u8> {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": prompt}]});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params})).into_bytes()
}

/// The number of the prompt that this line answers.
fn answered(line: &[u8]) -> Option<u64> {
    let head = &line[..line.len().min(48)];
    let at = memmem::find(head, br#""id":"#)? + 5;
    let digits = head[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&head[at..at + digits]).ok()?.parse().ok()
}
