//! The servers of this binary: bare hyper that answers scripts at once, axum as its documentation starts it, and a
//! socket without any buffer.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::process::ExitCode;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use bytes::{BufMut as _, Bytes, BytesMut};
use http_body_util::{BodyExt as _, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Interval;

use crate::frames::Script;

/// Runs one of them until it is killed. `None`: no such word.
pub fn main(word: &str) -> Option<ExitCode> {
    let serve = match word {
        "bare-server" => serve_bare,
        "axum-server" => serve_axum,
        "bufferless-server" => serve_bufferless,
        "ws-relay" => super::relay::serve_relay,
        "ws-relay-line-by-line" => super::relay::serve_relay_line_by_line,
        "ws-fan-relay" => super::relay::serve_fan,
        "ws-echo" => super::relay::serve_echo,
        _ => return None,
    };
    Some(match listen_and(serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    })
}

pub(super) type Serving = Pin<Box<dyn Future<Output = anyhow::Result<()>>>>;

fn listen_and(serve: fn(TcpListener) -> Serving) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let listener = socket.listen(4096)?;
        println!("{}", listener.local_addr()?);
        serve(listener).await
    })
}

fn serve_bare(listener: TcpListener) -> Serving {
    Box::pin(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            connections.spawn(async move {
                let http = hyper::server::conn::http1::Builder::new();
                // A client that leaves is no news.
                http.serve_connection(TokioIo::new(stream), service_fn(answer)).await.ok();
            });
            while connections.try_join_next().is_some() {}
        }
    })
}

async fn answer(request: Request<Incoming>) -> Result<Response<Either<Full<Bytes>, Scripted>>, Infallible> {
    let is_post = *request.method() == Method::POST;
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let script = Script::find(&body).filter(|_| is_post).unwrap_or(Script::Chunks { count: 1, size: 20 });
    let is_stream = memchr::memmem::find(&body, br#""stream":true"#).is_some()
        || memchr::memmem::find(&body, br#""stream": true"#).is_some();
    let (kind, body) = if is_stream {
        ("text/event-stream", Either::Right(Scripted::new(script)))
    } else {
        ("application/json", Either::Left(Full::from(whole(script))))
    };
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static(kind));
    Ok(response)
}

fn whole(script: Script) -> Vec<u8> {
    let mut answer = br#"{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"demo","choices":[{"index":0,"message":{"role":"assistant","content":""#.to_vec();
    let mut text = Vec::new();
    for number in 1..=script.count() {
        script.write(number, &mut text);
        answer.extend_from_slice(&text);
    }
    answer.extend_from_slice(
        br#""},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#,
    );
    answer
}

/// A stream of chunks, as fast as it is taken or at its pace.
struct Scripted {
    script: Script,
    number: u32,
    clock: Option<Interval>,
    text: Vec<u8>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begin,
    Speak,
    Over,
}

const BEFORE: &[u8] = br#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"demo","choices":[{"index":0,"delta":{"#;
const AFTER: &[u8] = b"},\"finish_reason\":null}]}\n\n";
const LAST: &[u8] = b"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// A frame is sent when it is about this long.
const FRAME: usize = 16 * 1024;

impl Scripted {
    fn new(script: Script) -> Self {
        let clock = match script {
            Script::Paced { every, .. } => Some(tokio::time::interval(Duration::from_millis(every.max(1).into()))),
            Script::Chunks { .. } | Script::Held { .. } => None,
        };
        Self { script, number: 0, clock, text: Vec::new(), stage: Stage::Begin }
    }

    fn event(&mut self, out: &mut BytesMut) {
        self.number += 1;
        self.script.write(self.number, &mut self.text);
        out.put_slice(BEFORE);
        out.put_slice(br#""content":""#);
        out.put_slice(&self.text);
        out.put_slice(b"\"");
        out.put_slice(AFTER);
    }
}

impl Body for Scripted {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        let mut out = BytesMut::new();
        if this.stage == Stage::Over {
            return Poll::Ready(None);
        }
        if this.stage == Stage::Begin {
            out.put_slice(BEFORE);
            out.put_slice(br#""role":"assistant","content":"""#);
            out.put_slice(AFTER);
            this.stage = Stage::Speak;
        }
        if let Some(clock) = &mut this.clock {
            if out.is_empty() {
                ready!(clock.poll_tick(cx));
                this.event(&mut out);
            }
        } else {
            while out.len() < FRAME && this.number < this.script.count() {
                this.event(&mut out);
            }
        }
        if this.number == this.script.count() {
            out.put_slice(BEFORE);
            out.put_slice(LAST);
            this.stage = Stage::Over;
        }
        Poll::Ready(Some(Ok(Frame::data(out.freeze()))))
    }
}

/// As axum's documentation starts it.
fn serve_axum(listener: TcpListener) -> Serving {
    let stream = || async {
        let body = axum::body::Body::new(Silent { said: false });
        ([("content-type", "text/event-stream")], body)
    };
    let app = Router::new().route("/health", get(|| async { "ok" })).route("/v1/chat/completions", post(stream));
    Box::pin(async move { Ok(axum::serve(listener, app).await?) })
}

/// A stream that says one thing and then nothing.
struct Silent {
    said: bool,
}

impl Body for Silent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.said {
            return Poll::Pending;
        }
        self.said = true;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b": here\n\n")))))
    }
}

/// A task and a socket for each connection, and no more.
fn serve_bufferless(listener: TcpListener) -> Serving {
    Box::pin(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await?;
            connections.spawn(hold(stream));
        }
    })
}

async fn hold(mut stream: TcpStream) {
    loop {
        if stream.readable().await.is_err() {
            return;
        }
        if !drain(&stream) {
            return;
        }
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        if stream.write_all(answer).await.is_err() {
            return;
        }
    }
}

/// Takes what is there. Whether the client is there still.
fn drain(stream: &TcpStream) -> bool {
    let mut buffer = [0; 2048];
    loop {
        match stream.try_read(&mut buffer) {
            Ok(0) => return false,
            Ok(read) if read < buffer.len() => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
        }
    }
}
