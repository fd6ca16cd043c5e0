//! The demo agent on a bare pipe: what it takes to read its lines at all, and to look at each of them once.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// As large as the pipe of a child of ours, and the buffer it is read into.
const PIPE: usize = 256 * 1024;

/// What a reader does with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Finds where it ends.
    Split,
    /// Reads `id` and `method`, borrows `params`, drops all.
    Envelope,
}

pub struct BarePipe {
    process: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    buffer: Vec<u8>,
    /// Where the bytes begin that are not part of a whole line yet, and where they end.
    rest: std::ops::Range<usize>,
    session: String,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

impl BarePipe {
    pub fn start() -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("demo-agent").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().context("the demo agent did not start")?;
        let stdin = process.stdin.take().context("the demo agent has no stdin")?;
        let stdout = process.stdout.take().context("the demo agent has no stdout")?;
        rustix::pipe::fcntl_setpipe_size(&stdout, PIPE)?;
        let mut pipe = Self { process, stdin, stdout, buffer: vec![0; PIPE], rest: 0..0, session: String::new() };
        pipe.call("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}))?;
        let opened = pipe.call("session/new", &json!({"cwd": "/", "mcpServers": []}))?;
        opened["result"]["sessionId"].as_str().context("no session")?.clone_into(&mut pipe.session);
        Ok(pipe)
    }

    /// Lets the agent send a burst and reads it to its end. Gives the number of updates.
    pub fn burst(&mut self, prompt: &str, look: Look) -> anyhow::Result<u32> {
        let params = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": prompt}]});
        self.send("session/prompt", &params)?;
        let mut updates = 0;
        loop {
            let whole = self.fill()?;
            let lines = &self.buffer[whole.clone()];
            let over = match look {
                Look::Split => split(lines, &mut updates),
                Look::Envelope => envelopes(lines, &mut updates)?,
            };
            if over {
                return Ok(updates);
            }
        }
    }

    fn send(&mut self, method: &str, params: &Value) -> anyhow::Result<()> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        Ok(self.stdin.write_all(format!("{message}\n").as_bytes())?)
    }

    fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.send(method, params)?;
        loop {
            let whole = self.fill()?;
            for line in self.buffer[whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let message: Value = serde_json::from_slice(line)?;
                if message["id"] == 1 {
                    return Ok(message);
                }
            }
        }
    }

    /// Reads once, more if no line is whole. Gives the whole lines, which stay until the next call.
    fn fill(&mut self) -> anyhow::Result<std::ops::Range<usize>> {
        self.buffer.copy_within(self.rest.clone(), 0);
        let mut end = self.rest.len();
        loop {
            let read = self.stdout.read(&mut self.buffer[end..])?;
            anyhow::ensure!(read > 0, "the demo agent ended");
            end += read;
            if let Some(last) = memchr::memrchr(b'\n', &self.buffer[end - read..end]) {
                let whole = end - read + last + 1;
                self.rest = whole..end;
                return Ok(0..whole);
            }
        }
    }
}

/// Counts the lines. The one that ends the turn has an id in front, and is the last one that comes.
fn split(lines: &[u8], updates: &mut u32) -> bool {
    let mut start = 0;
    let mut last = &lines[..0];
    for newline in memchr::memchr_iter(b'\n', lines) {
        last = std::hint::black_box(&lines[start..newline]);
        start = newline + 1;
        *updates += 1;
    }
    let over = memchr::memmem::find(&last[..last.len().min(32)], b"\"id\":1").is_some();
    *updates -= u32::from(over);
    over
}

fn envelopes(lines: &[u8], updates: &mut u32) -> anyhow::Result<bool> {
    let mut start = 0;
    for newline in memchr::memchr_iter(b'\n', lines) {
        let read: Envelope<'_> = serde_json::from_slice(&lines[start..newline])?;
        start = newline + 1;
        std::hint::black_box(read.params);
        match (read.method, read.id) {
            (Some("session/update"), None) => *updates += 1,
            (None, Some(_)) => return Ok(true),
            other => anyhow::bail!("an unexpected message: {:?}", other.0),
        }
    }
    Ok(false)
}

impl Drop for BarePipe {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
