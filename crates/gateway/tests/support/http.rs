//! A client of one request at a time that believes nothing: it reads what stands on the wire.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longer than anything may take on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_mins(3);

pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The error's `code`.
    #[track_caller]
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The text of a whole completion.
    #[track_caller]
    pub fn text(&self) -> String {
        self.json()["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
    }
}

/// A connection to the gateway.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> io::Result<()> {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str("host: localhost\r\n");
        }
        for (name, value) in headers {
            head.extend([*name, ": ", *value, "\r\n"]);
        }
        if let Some(body) = body {
            head.extend(["content-length: ", &body.len().to_string(), "\r\n"]);
        }
        head.push_str("\r\n");
        head.push_str(body.unwrap_or_default());
        self.stream.get_mut().write_all(head.as_bytes())
    }

    /// Status and headers; names in lower case.
    pub fn head(&mut self) -> io::Result<(u16, Vec<(String, String)>)> {
        let status_line = self.line()?;
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status line: {status_line:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            match line.split_once(':') {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
                None => return Ok((status, headers)),
            }
        }
    }

    pub fn answer(&mut self) -> io::Result<Answer> {
        let (status, headers) = self.head()?;
        let value = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let mut body = Vec::new();
        if value("transfer-encoding").as_deref() == Some("chunked") {
            while let Some(chunk) = self.chunk()? {
                body.extend(chunk);
            }
        } else if let Some(length) = value("content-length").and_then(|length| length.parse().ok()) {
            body.resize(length, 0);
            self.stream.read_exact(&mut body)?;
        }
        let body = String::from_utf8(body).map_err(io::Error::other)?;
        Ok(Answer { status, headers, body })
    }

    /// The next piece of a chunked body; `None` at its proper end.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let length = self.line()?;
        let length = usize::from_str_radix(&length, 16).map_err(io::Error::other)?;
        let mut data = vec![0; length + 2];
        self.stream.read_exact(&mut data)?;
        data.truncate(length);
        Ok((length > 0).then_some(data))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}

/// The events of a streamed completion.
pub struct Events {
    pub status: u16,
    /// The session that answers.
    pub session: Option<String>,
    connection: Connection,
    unread: String,
}

/// How a stream ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// With `[DONE]` and the end of the body.
    Done,
    /// With an error event, by its code.
    Error(String),
    /// The connection broke.
    Cut,
}

impl Events {
    pub fn begin(mut connection: Connection) -> io::Result<Self> {
        let (status, headers) = connection.head()?;
        let session = headers.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("x-session-id"));
        Ok(Self { status, session: session.map(|(_, id)| id), connection, unread: String::new() })
    }

    /// The data of the next event; `None` at the end of the body.
    pub fn next(&mut self) -> io::Result<Option<String>> {
        if self.status != 200 {
            // Refused: the body is no stream.
            return Ok(None);
        }
        loop {
            if let Some(end) = self.unread.find("\n\n") {
                let event: String = self.unread.drain(..end + 2).collect();
                if let Some(data) = event.strip_prefix("data: ") {
                    return Ok(Some(data.trim_end().to_owned()));
                }
                continue;
            }
            match self.connection.chunk()? {
                Some(chunk) => self.unread.push_str(&String::from_utf8(chunk).map_err(io::Error::other)?),
                None => return Ok(None),
            }
        }
    }

    /// Everything up to the end: the text of the deltas, and how it ended.
    pub fn rest(&mut self) -> (String, End) {
        let mut text = String::new();
        let mut end = End::Cut;
        while let Ok(Some(data)) = self.next() {
            if data == "[DONE]" {
                end = End::Done;
                continue;
            }
            let event: Value = serde_json::from_str(&data).unwrap();
            if let Some(code) = event["error"]["code"].as_str() {
                end = End::Error(code.to_owned());
            }
            text.push_str(event["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
        }
        (text, end)
    }

    /// Reads until this text has come.
    #[track_caller]
    pub fn until(&mut self, wanted: &str) {
        let mut text = String::new();
        while !text.contains(wanted) {
            let data = self.next().unwrap().unwrap_or_else(|| panic!("`{wanted}` did not come: {text}"));
            let event: Value = serde_json::from_str(&data).unwrap_or_else(|_| panic!("the end came: {data}"));
            text.push_str(event["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
        }
    }
}
