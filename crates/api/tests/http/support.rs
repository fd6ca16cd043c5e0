//! A running server with a few routes, and a client that knows only bytes.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::routing::{get, post};
use axum::{Extension, Router};
use bytes::Bytes;
use gembridge_api::admin::health::{self, Readiness};
use gembridge_api::frontend::Frontend;
use gembridge_api::guard::{Guard, GuardConfig};
use gembridge_api::identity::{Identity, Rank};
use gembridge_api::keys::{Digest, Key, KeyTable};
use gembridge_api::routes::app;
use gembridge_api::server::{Drained, Server, ServerConfig, Stop};
use gembridge_core::model::Principal;
use http_body::Frame;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

/// Long enough for a loaded machine; reached only by a failing test.
pub const PATIENCE: Duration = Duration::from_mins(1);

pub const KEY: &str = "gb-canary-key";
pub const OTHER_KEY: &str = "gb-other-key";

pub struct TestServer {
    pub addr: SocketAddr,
    pub keys: Arc<KeyTable>,
    pub guard: Arc<Guard>,
    pub readiness: Readiness,
    pub stop: Stop,
    /// Lets a `/wait` request go on.
    pub gate: Arc<Semaphore>,
    /// How many of them have come so far.
    arrivals: watch::Receiver<usize>,
    /// Says once for each stream that was dropped.
    pub dropped: mpsc::Receiver<()>,
    running: JoinSet<Drained>,
}

pub fn config() -> (ServerConfig, GuardConfig) {
    let server = ServerConfig::new(vec![SocketAddr::from(([127, 0, 0, 1], 0))]);
    (server, GuardConfig { rate: None, ..GuardConfig::default() })
}

pub fn digest(key: &str) -> Digest {
    Key::given(key).digest()
}

impl TestServer {
    pub fn start() -> Self {
        let (server, guard) = config();
        Self::with(server, guard)
    }

    pub fn with(server: ServerConfig, guard: GuardConfig) -> Self {
        Self::beside(server, guard, [])
    }

    /// The same with more frontends.
    pub fn beside(server: ServerConfig, guard: GuardConfig, others: impl IntoIterator<Item = Frontend>) -> Self {
        let server = Server::bind(server).unwrap();
        let addr = server.local_addrs().unwrap()[0];
        let someone = |name: &str, rank| Identity { principal: Principal::new(name), rank };
        let keys = Arc::new(KeyTable::new(vec![
            (digest(KEY), someone("ann", Rank::Admin)),
            (digest(OTHER_KEY), someone("bob", Rank::User)),
        ]));
        let guard = Guard::new(guard, keys.clone());
        let (readiness, stop, gate) = (Readiness::default(), Stop::default(), Arc::new(Semaphore::new(0)));
        let (on_drop, dropped) = mpsc::channel(1_000);
        let (on_arrival, arrivals) = watch::channel(0);
        let frontend = Frontend { open: health::routes(readiness.clone()), ..routes(&gate, on_arrival, &on_drop) };
        let mut running = JoinSet::new();
        running.spawn(server.serve(app(&guard, others.into_iter().chain([frontend])), stop.clone()));
        Self { addr, keys, guard, readiness, stop, gate, arrivals, dropped, running }
    }

    /// One request on a connection of its own.
    pub async fn ask(&self, request: &str) -> Reply {
        let mut client = self.connect().await;
        client.send(request).await;
        client.reply().await
    }

    pub async fn connect(&self) -> Client {
        let stream = soon(TcpStream::connect(self.addr)).await.unwrap();
        Client { stream, unread: Vec::new() }
    }

    /// Returns when so many `/wait` requests have reached their route.
    pub async fn arrived(&mut self, count: usize) {
        soon(self.arrivals.wait_for(|arrived| *arrived == count)).await.unwrap();
    }

    /// How serving ended.
    pub async fn ended(&mut self) -> Drained {
        soon(self.running.join_next()).await.unwrap().unwrap()
    }
}

fn routes(gate: &Arc<Semaphore>, on_arrival: watch::Sender<usize>, on_drop: &mpsc::Sender<()>) -> Frontend {
    let (gate, on_drop) = (Arc::clone(gate), on_drop.clone());
    let small = Router::new()
        .route("/who", get(|Extension(who): Extension<Identity>| async move { who.principal.to_string() }))
        .route("/small", post(|body: Bytes| async move { body.len().to_string() }))
        .route("/panic", get(panics))
        .route("/panic-later", get(|| async { Body::new(Stream::Panics) }))
        .route(
            "/wait",
            get(move || async move {
                on_arrival.send_modify(|count| *count += 1);
                gate.acquire().await.unwrap().forget();
                "done"
            }),
        )
        .route("/stream", get(move || async move { Body::new(Stream::Endless(Sent { first: true, on_drop })) }))
        .route("/flood", get(|| async { Body::new(Stream::Flood) }));
    let large = Router::new().route("/large", post(|body: Bytes| async move { body.len().to_string() }));
    let metadata = Router::new().route("/facts", get(|| async { "facts" }));
    Frontend { small, large, metadata, ..Frontend::default() }
}

async fn panics() -> &'static str {
    panic!("the secret text of a panic")
}

/// Bodies that end in unusual ways, or not at all.
enum Stream {
    /// One event, then silence.
    Endless(Sent),
    /// As much as the client takes.
    Flood,
    Panics,
}

struct Sent {
    first: bool,
    on_drop: mpsc::Sender<()>,
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.on_drop.try_send(()).unwrap();
    }
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Endless(sent) if sent.first => {
                sent.first = false;
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"data: one\n\n")))))
            }
            Self::Endless(_) => Poll::Pending,
            Self::Flood => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 16_384]))))),
            Self::Panics => panic!("the secret text of a panic"),
        }
    }
}

pub struct Client {
    pub stream: TcpStream,
    unread: Vec<u8>,
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Client {
    pub async fn send(&mut self, bytes: &str) {
        soon(self.stream.write_all(bytes.as_bytes())).await.unwrap();
    }

    /// Sends as far as the server lets it.
    pub async fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        soon(self.stream.write_all(bytes)).await
    }

    pub async fn head(&mut self) -> Reply {
        let end = loop {
            if let Some(at) = find(&self.unread, b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.more().await.unwrap() > 0, "closed before an answer: {:?}", self.text());
        };
        let head: Vec<u8> = self.unread.drain(..end).collect();
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply { status, head, body: String::new() }
    }

    pub async fn reply(&mut self) -> Reply {
        let mut reply = self.head().await;
        let length = reply.header("content-length").map(|length| length.parse::<usize>().unwrap());
        match length {
            Some(length) => {
                while self.unread.len() < length {
                    assert!(self.more().await.unwrap() > 0, "closed inside an answer: {:?}", self.text());
                }
                reply.body = String::from_utf8(self.unread.drain(..length).collect()).unwrap();
            }
            None if reply.status == 204 => {}
            None => {
                while find(&self.unread, b"0\r\n\r\n").is_none() && matches!(self.more().await, Ok(1..)) {}
                reply.body = String::from_utf8(std::mem::take(&mut self.unread)).unwrap();
            }
        }
        reply
    }

    /// Waits until so much text of a stream has come.
    pub async fn until(&mut self, text: &str) {
        while find(&self.unread, text.as_bytes()).is_none() {
            assert!(self.more().await.unwrap() > 0, "closed before {text:?}: {:?}", self.text());
        }
    }

    /// Waits until the server has closed the connection.
    pub async fn closed(&mut self) {
        while matches!(self.more().await, Ok(1..)) {}
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.unread).into_owned()
    }

    async fn more(&mut self) -> io::Result<usize> {
        soon(self.stream.read_buf(&mut self.unread)).await
    }
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
    }

    pub fn error(&self) -> serde_json::Value {
        let value: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"));
        value["error"].clone()
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// The request with the usual headers, and more.
pub fn request(line: &str, headers: &[&str]) -> String {
    let more = headers.iter().flat_map(|header| [*header, "\r\n"]).collect::<String>();
    format!("{line} HTTP/1.1\r\nhost: localhost\r\n{more}\r\n")
}

pub fn with_key(line: &str, headers: &[&str]) -> String {
    let key = format!("authorization: Bearer {KEY}");
    let headers: Vec<&str> = headers.iter().copied().chain([key.as_str()]).collect();
    request(line, &headers)
}

pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing happened in time")
}
