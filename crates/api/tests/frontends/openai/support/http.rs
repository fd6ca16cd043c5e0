//! A client that sees the bytes.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_mins(1);

/// A whole response.
pub struct Answer {
    pub status: u16,
    pub headers: hyper::HeaderMap,
    pub body: String,
}

/// A response whose body is being read. Dropping it closes the connection.
pub struct Stream {
    pub status: u16,
    pub headers: hyper::HeaderMap,
    body: Incoming,
    seen: String,
    _connection: JoinSet<()>,
}

pub async fn post(address: SocketAddr, path: &str, headers: &[(&str, &str)], body: String) -> Stream {
    let mut request = Request::post(path).header("host", "localhost").header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(address, request.body(Full::new(Bytes::from(body))).expect("a request")).await
}

pub async fn get(address: SocketAddr, path: &str) -> Answer {
    get_with(address, path, &[]).await
}

pub async fn get_with(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Answer {
    request(address, "GET", path, headers).await
}

/// A request without a body.
pub async fn request(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(address, request.body(Full::new(Bytes::new())).expect("a request")).await.whole().await
}

async fn send(address: SocketAddr, request: Request<Full<Bytes>>) -> Stream {
    let exchange = async {
        let socket = TcpStream::connect(address).await.expect("the server listens");
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await.expect("HTTP");
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { drop(connection.await) });
        let response: Response<Incoming> = sender.send_request(request).await.expect("a response");
        let (parts, body) = response.into_parts();
        Stream { status: parts.status.as_u16(), headers: parts.headers, body, seen: String::new(), _connection: tasks }
    };
    tokio::time::timeout(PATIENCE, exchange).await.expect("the server answers")
}

impl Stream {
    pub async fn whole(mut self) -> Answer {
        while self.more().await {}
        Answer { status: self.status, headers: self.headers, body: self.seen }
    }

    /// Reads on until this stands in the body.
    pub async fn until(&mut self, words: &str) -> &str {
        while !self.seen.contains(words) {
            assert!(self.more().await, "the stream ended before `{words}`: {}", self.seen);
        }
        &self.seen
    }

    async fn more(&mut self) -> bool {
        let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await.expect("the stream goes on");
        let Some(frame) = frame else { return false };
        if let Ok(data) = frame.expect("a sound stream").into_data() {
            self.seen.push_str(std::str::from_utf8(&data).expect("chunks are cut between characters"));
        }
        true
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub fn text(&self) -> String {
        assert_eq!(self.status, 200, "{}", self.body);
        self.json()["choices"][0]["message"]["content"].as_str().expect("text").to_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("ASCII"))
    }

    pub fn finish(&self) -> String {
        self.json()["choices"][0]["finish_reason"].as_str().expect("a reason").to_owned()
    }

    pub fn error(&self) -> (u16, String, String) {
        let error = &self.json()["error"];
        let field = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        (self.status, field("type"), field("param"))
    }

    /// The data of each event of a stream.
    pub fn events(&self) -> Vec<&str> {
        let events = self.body.split("\n\n").filter(|event| !event.is_empty() && !event.starts_with(':'));
        events.map(|event| event.strip_prefix("data: ").expect("data alone")).collect()
    }

    /// The chunks, without the end.
    pub fn chunks(&self) -> Vec<Value> {
        assert_eq!(self.status, 200, "{}", self.body);
        let events = self.events();
        let (last, chunks) = events.split_last().expect("a stream");
        assert_eq!(*last, "[DONE]");
        chunks.iter().map(|chunk| serde_json::from_str(chunk).expect("JSON")).collect()
    }

    /// The text of one answer of a stream.
    pub fn streamed(&self, index: u64) -> String {
        let of_answer = self.chunks();
        let choices = of_answer.iter().flat_map(|chunk| chunk["choices"].as_array().expect("choices").clone());
        let texts = choices.filter(|choice| choice["index"] == index);
        texts.filter_map(|choice| choice["delta"]["content"].as_str().map(str::to_owned)).collect()
    }
}
