//! A small WebSocket client on a bare socket: it masks, answers pings, and hands out each message where it was read.

use std::io::ErrorKind;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::house::PATIENCE;
use crate::http::Target;

pub struct WebSocket {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// What was read and not taken yet.
    start: usize,
    end: usize,
    calls: u64,
}

/// Whether a reader wants the next message as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    GoesOn,
    IsOver,
}

/// A frame of the server: its kind, and where its body stands.
struct Frame {
    opcode: u8,
    body: std::ops::Range<usize>,
}

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

const BUFFER: usize = 64 * 1024;
/// Any mask is as good as another here.
const MASK: [u8; 4] = [0x5a, 0x11, 0xc3, 0x27];

impl WebSocket {
    /// Connects and shakes hands; what comes after the handshake stays to be read.
    pub async fn open(target: &Target, path: &str) -> anyhow::Result<Self> {
        let stream = timeout(PATIENCE, TcpStream::connect(target.address)).await.context("nobody answers")??;
        stream.set_nodelay(true)?;
        let mut socket = Self { stream, buffer: Vec::new(), start: 0, end: 0, calls: 0 };
        let Target { address, key } = target;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        );
        socket.stream.write_all(request.as_bytes()).await?;
        let length = loop {
            if let Some(length) = memchr::memmem::find(&socket.buffer[..socket.end], b"\r\n\r\n") {
                break length;
            }
            socket.fill().await?;
        };
        let head = &socket.buffer[..length];
        anyhow::ensure!(head.starts_with(b"HTTP/1.1 101 "), "no WebSocket: {}", String::from_utf8_lossy(head));
        socket.start = length + 4;
        Ok(socket)
    }

    /// A client of the gateway that has said who it is.
    pub async fn client(target: &Target) -> anyhow::Result<Self> {
        let mut socket = Self::open(target, "/acp").await?;
        socket.initialize().await?;
        Ok(socket)
    }

    pub async fn initialize(&mut self) -> anyhow::Result<Value> {
        let meta = json!({"gembridge": {"extensions": true}});
        self.call("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}, "_meta": meta})).await
    }

    /// Begins a session and gives its name.
    pub async fn begin(&mut self) -> anyhow::Result<String> {
        let opened = self.call("session/new", &json!({"cwd": "/", "mcpServers": []})).await?;
        Ok(opened["sessionId"].as_str().context("no session")?.to_owned())
    }

    pub async fn prompt(&mut self, session: &str, text: &str) -> anyhow::Result<u64> {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.ask("session/prompt", &params).await
    }

    /// Sends a request and reads past everything until its answer is there.
    pub async fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let id = self.ask(method, params).await?;
        let mut answer = Value::Null;
        self.take(|message| {
            let read: Value = serde_json::from_slice(message)?;
            if read["id"] == id && read.get("method").is_none() {
                answer = read;
                return Ok(Reading::IsOver);
            }
            Ok(Reading::GoesOn)
        })
        .await?;
        anyhow::ensure!(answer["error"].is_null(), "`{method}` is refused: {answer}");
        Ok(answer["result"].take())
    }

    /// Sends a request and gives its id.
    pub async fn ask(&mut self, method: &str, params: &Value) -> anyhow::Result<u64> {
        self.calls += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params});
        self.send(&request.to_string()).await?;
        Ok(self.calls)
    }

    pub async fn send(&mut self, message: &str) -> anyhow::Result<()> {
        let frame = masked(TEXT, message.as_bytes());
        Ok(self.stream.write_all(&frame).await?)
    }

    /// Reads past everything until a message has this in it.
    pub async fn until(&mut self, word: &str) -> anyhow::Result<()> {
        let finder = memchr::memmem::Finder::new(word.as_bytes());
        self.take(|message| Ok(if finder.find(message).is_some() { Reading::IsOver } else { Reading::GoesOn })).await
    }

    /// Hands out one message after the other.
    pub async fn take(&mut self, mut each: impl FnMut(&[u8]) -> anyhow::Result<Reading>) -> anyhow::Result<()> {
        loop {
            while let Some(Frame { opcode, body }) = self.frame()? {
                self.start = body.end;
                let body = &self.buffer[body];
                match opcode {
                    TEXT if each(body)? == Reading::IsOver => return Ok(()),
                    PING => {
                        let pong = masked(PONG, body);
                        self.stream.write_all(&pong).await?;
                    }
                    CLOSE => anyhow::bail!("the server closed: {}", closing(body)),
                    _ => {}
                }
            }
            self.fill().await?;
        }
    }

    /// Lets the buffer go, so that an idle socket costs the client nothing.
    pub fn rest(&mut self) {
        (self.buffer, self.start, self.end) = (Vec::new(), 0, 0);
    }

    /// The next frame, if all of it is there.
    fn frame(&self) -> anyhow::Result<Option<Frame>> {
        let bytes = &self.buffer[self.start..self.end];
        let (Some(first), Some(second)) = (bytes.first(), bytes.get(1)) else { return Ok(None) };
        anyhow::ensure!(first & 0xf0 == 0x80 && second & 0x80 == 0, "a frame that is cut, masked or extended");
        let (length, head) = match second {
            126 => (bytes.get(2..4).and_then(|b| b.try_into().ok()).map(|b| u64::from(u16::from_be_bytes(b))), 4),
            127 => (bytes.get(2..10).and_then(|b| b.try_into().ok()).map(u64::from_be_bytes), 10),
            short => (Some(u64::from(*short)), 2),
        };
        let Some(length) = length else { return Ok(None) };
        let end = head + usize::try_from(length)?;
        let body = self.start + head..self.start + end;
        Ok((bytes.len() >= end).then_some(Frame { opcode: first & 0x0f, body }))
    }

    async fn fill(&mut self) -> anyhow::Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len().max(BUFFER / 2) * 2, 0);
        }
        let read = timeout(PATIENCE, self.stream.read(&mut self.buffer[self.end..])).await;
        let read = match read.context("the server says nothing any more")? {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => 0,
            read => read?,
        };
        anyhow::ensure!(read > 0, "the server hung up");
        self.end += read;
        Ok(())
    }
}

fn masked(opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x80 | opcode];
    match (u8::try_from(body.len()), u16::try_from(body.len())) {
        (Ok(short), _) if short < 126 => frame.push(0x80 | short),
        (_, Ok(medium)) => {
            frame.push(0xfe);
            frame.extend(medium.to_be_bytes());
        }
        _ => {
            frame.push(0xff);
            frame.extend((body.len() as u64).to_be_bytes());
        }
    }
    frame.extend(MASK);
    frame.extend(body.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

fn closing(body: &[u8]) -> String {
    let code = body.get(..2).and_then(|code| code.try_into().ok()).map_or(0, u16::from_be_bytes);
    format!("{code} {}", String::from_utf8_lossy(body.get(2..).unwrap_or_default()))
}
