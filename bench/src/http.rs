//! A small HTTP/1.1 client on a bare socket: what it costs itself is little, and the same for every contender.

use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::house::PATIENCE;

/// What is asked of a contender, and how.
#[derive(Clone, Debug)]
pub struct Target {
    pub address: SocketAddr,
    pub key: String,
}

/// How the answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    Whole,
    Stream,
}

pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// What was read and not taken yet.
    start: usize,
    end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
}

#[derive(Debug)]
pub struct Head {
    pub status: u16,
    pub session: Option<String>,
    framing: Framing,
}

const BUFFER: usize = 16 * 1024;

impl Target {
    /// One message of the user, in a session or in none.
    pub fn chat(&self, prompt: &str, reply: Reply, session: Option<&str>) -> Vec<u8> {
        let message = serde_json::json!([{"role": "user", "content": prompt}]);
        self.conversation(&message.to_string(), reply, session)
    }

    /// One message of the user to this model, whose whole answer is wanted.
    pub fn chat_with(&self, model: &str, prompt: &str, session: Option<&str>) -> Vec<u8> {
        let body = serde_json::json!({"model": model, "messages": [{"role": "user", "content": prompt}]});
        self.completion(&body.to_string(), session)
    }

    /// A request with these messages, which are JSON already.
    pub fn conversation(&self, messages: &str, reply: Reply, session: Option<&str>) -> Vec<u8> {
        let stream = if reply == Reply::Stream { "true" } else { "false" };
        self.completion(&format!(r#"{{"model":"demo","stream":{stream},"messages":{messages}}}"#), session)
    }

    /// A whole answer to these messages, with a tool that the client runs.
    pub fn with_tool(&self, messages: &serde_json::Value, session: Option<&str>) -> Vec<u8> {
        let tool = r#"{"type":"function","function":{"name":"pick","parameters":{"type":"object"}}}"#;
        self.completion(&format!(r#"{{"model":"demo","messages":{messages},"tools":[{tool}]}}"#), session)
    }

    fn completion(&self, body: &str, session: Option<&str>) -> Vec<u8> {
        self.post("/v1/chat/completions", body, session)
    }

    /// A request of any dialect, in a session or in none.
    pub fn post(&self, path: &str, body: &str, session: Option<&str>) -> Vec<u8> {
        let pin = session.map_or_else(String::new, |session| format!("x-session-id: {session}\r\n"));
        let Self { address, key } = self;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\n{pin}Content-Length: {}\r\n\r\n",
            body.len()
        );
        (head + body).into_bytes()
    }

    pub fn get(&self, path: &str) -> Vec<u8> {
        let Self { address, key } = self;
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\r\n").into_bytes()
    }

    /// A new key of rank `user`, made by an operator.
    pub fn create_key(&self, name: &str) -> Vec<u8> {
        let Self { address, key } = self;
        let body = format!(r#"{{"name":"{name}","rank":"user"}}"#);
        format!(
            "POST /admin/keys HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }

    pub fn revoke_key(&self, name: &str) -> Vec<u8> {
        let Self { address, key } = self;
        format!("DELETE /admin/keys/{name} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\r\n")
            .into_bytes()
    }

    pub async fn connect(&self) -> anyhow::Result<Connection> {
        let stream = timeout(PATIENCE, TcpStream::connect(self.address)).await.context("nobody answers")??;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, buffer: Vec::new(), start: 0, end: 0 })
    }
}

impl Connection {
    /// Sends a request and reads what comes before the body.
    pub async fn ask(&mut self, request: &[u8]) -> anyhow::Result<Head> {
        self.stream.write_all(request).await?;
        loop {
            let unread = &self.buffer[self.start..self.end];
            if let Some(length) = memchr::memmem::find(unread, b"\r\n\r\n") {
                let head = head(&unread[..length + 2])?;
                self.start += length + 4;
                return Ok(head);
            }
            self.fill().await?;
        }
    }

    /// Reads the body to its end.
    pub async fn body(&mut self, head: &Head, mut take: impl FnMut(&[u8]) -> anyhow::Result<()>) -> anyhow::Result<()> {
        match head.framing {
            Framing::Length(length) => self.exactly(length, &mut take).await,
            Framing::Chunked => loop {
                let size = self.chunk_size().await?;
                self.exactly(size, &mut take).await?;
                self.exactly(2, &mut |_: &[u8]| Ok(())).await?;
                if size == 0 {
                    return Ok(());
                }
            },
        }
    }

    pub async fn text(&mut self, head: &Head) -> anyhow::Result<Vec<u8>> {
        let mut text = Vec::new();
        self.body(head, |piece| {
            text.extend_from_slice(piece);
            Ok(())
        })
        .await?;
        Ok(text)
    }

    /// Lets the buffer go, so that an idle connection costs the client nothing.
    pub fn rest(&mut self) {
        (self.buffer, self.start, self.end) = (Vec::new(), 0, 0);
    }

    async fn exactly(
        &mut self,
        mut left: usize,
        take: &mut impl FnMut(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        loop {
            let here = left.min(self.end - self.start);
            if here > 0 {
                take(&self.buffer[self.start..self.start + here])?;
                self.start += here;
                left -= here;
            }
            if left == 0 {
                return Ok(());
            }
            self.fill().await?;
        }
    }

    async fn chunk_size(&mut self) -> anyhow::Result<usize> {
        loop {
            let unread = &self.buffer[self.start..self.end];
            if let Some(length) = memchr::memmem::find(unread, b"\r\n") {
                let digits = std::str::from_utf8(&unread[..length])?;
                let size =
                    usize::from_str_radix(digits.trim(), 16).with_context(|| format!("a chunk of `{digits}`"))?;
                self.start += length + 2;
                return Ok(size);
            }
            self.fill().await?;
        }
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
        let read = read.context("the server says nothing any more")??;
        anyhow::ensure!(read > 0, "the server hung up");
        self.end += read;
        Ok(())
    }
}

fn head(text: &[u8]) -> anyhow::Result<Head> {
    let text = std::str::from_utf8(text)?;
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok()).context("no status")?;
    let mut head = Head { status, session: None, framing: Framing::Length(0) };
    for line in text.lines().skip(1) {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => head.framing = Framing::Length(value.parse()?),
            "transfer-encoding" => head.framing = Framing::Chunked,
            "x-session-id" => head.session = Some(value.to_owned()),
            _ => {}
        }
    }
    Ok(head)
}
