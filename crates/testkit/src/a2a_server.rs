//! A fake A2A server of either version. What it does is decided by the words of a message; the words are listed at
//! [`Deed`]. It keeps every request that it got.

mod body;
mod wire;

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use body::{ChannelBody, Sink};
pub use wire::Version;

/// How the server tells what its agent does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As coding agents do: pieces of text in status updates with `metadata.coderAgent`; turns end `input-required`.
    Coder,
    /// As most others do: the answer is an artifact, and the task is `completed` with it.
    Plain,
    /// As `Plain`, and the card says that it does not stream.
    Whole,
}

/// A server that runs until it is dropped.
pub struct FakeA2aServer {
    address: std::net::SocketAddr,
    state: Arc<State>,
    _serving: JoinSet<()>,
}

struct State {
    version: Version,
    manner: Manner,
    address: std::net::SocketAddr,
    key: Option<&'static str>,
    inner: Mutex<Inner>,
    /// Changes with every request and every connection that ends.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    requests: Vec<Value>,
    /// The connections that are closed, by their number.
    closed: HashSet<u64>,
    tasks: HashMap<String, Task>,
    /// How many tasks there ever were.
    begun: u64,
}

struct Task {
    context: String,
    /// The connection of the stream that began the tool which waits.
    asked_on: Option<u64>,
    state: &'static str,
}

/// What a message makes the server do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    /// Anything else: tells the words back.
    Echo,
    /// `think`: a thought first.
    Think,
    /// `ask`: a tool that waits for a decision.
    Ask,
    /// `hang`: says one word, then nothing more.
    Hang,
    /// `half`: says one word, then the connection breaks.
    Half,
    /// `early`: says one word, then the stream ends in order, the task not.
    Early,
    /// `garbage`: says one word, then something that is no JSON.
    Garbage,
    /// `fail`: the task fails, with a reason.
    Fail,
    /// `refuse`: an error of JSON-RPC.
    Refuse,
    /// `status 500`: an error of HTTP, with a key in its body.
    Status,
    /// `message`: a message instead of a task.
    Message,
    /// `forget`: all tasks are forgotten, then as `Echo`.
    Forget,
}

impl Deed {
    fn of(words: &str) -> Self {
        match words {
            "think" => Self::Think,
            "ask" => Self::Ask,
            "hang" => Self::Hang,
            "half" => Self::Half,
            "early" => Self::Early,
            "garbage" => Self::Garbage,
            "fail" => Self::Fail,
            "refuse" => Self::Refuse,
            "status 500" => Self::Status,
            "message" => Self::Message,
            "forget" => Self::Forget,
            _ => Self::Echo,
        }
    }
}

impl FakeA2aServer {
    pub async fn start(version: Version, manner: Manner) -> io::Result<Self> {
        Self::start_with(version, manner, None).await
    }

    /// One that wants this key.
    pub async fn start_with(version: Version, manner: Manner, key: Option<&'static str>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let changes = watch::Sender::new(0);
        let state = Arc::new(State { version, manner, address, key, inner: Mutex::default(), changes });
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&state)));
        Ok(Self { address, state, _serving: serving })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bodies of all calls, in order.
    pub fn requests(&self) -> Vec<Value> {
        self.state.inner().requests.clone()
    }

    /// Waits until so many calls of this method came, and gives the last of them.
    pub async fn called(&self, method: &str, times: usize) -> Value {
        let mut changes = self.state.changes.subscribe();
        loop {
            let calls: Vec<Value> = self.requests().into_iter().filter(|call| call["method"] == method).collect();
            if calls.len() >= times {
                return calls[times - 1].clone();
            }
            if changes.changed().await.is_err() {
                return Value::Null;
            }
        }
    }

    /// Waits until every connection but `open` of them is closed.
    pub async fn connections_left(&self, open: u64) {
        let mut changes = self.state.changes.subscribe();
        loop {
            let is_so = {
                let inner = self.state.inner();
                let begun = inner.requests.len() as u64;
                begun.saturating_sub(inner.closed.len() as u64) <= open
            };
            if is_so || changes.changed().await.is_err() {
                return;
            }
        }
    }
}

impl State {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    let mut number = 0;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    number += 1;
                    connections.spawn(connection(stream, number, Arc::clone(&state)));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, number: u64, state: Arc<State>) {
    let service = service_fn(|request| answer(request, number, Arc::clone(&state)));
    // An error here is a client that went away, or a deed that cut the connection.
    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
    state.inner().closed.insert(number);
    state.changed();
}

async fn answer(
    request: Request<Incoming>,
    connection: u64,
    state: Arc<State>,
) -> Result<Response<ChannelBody>, Infallible> {
    let (head, body) = request.into_parts();
    let expected = state.key.map(|key| format!("Bearer {key}"));
    let given = head.headers.get("authorization").and_then(|value| value.to_str().ok());
    if expected.is_some() && given != expected.as_deref() {
        return Ok(whole(401, &json!({ "error": "a key is needed" })));
    }
    if head.method == Method::GET {
        // No call, so that the connections of cards are not counted.
        state.inner().requests.push(json!({ "method": "card" }));
        state.changed();
        return Ok(match head.uri.path() {
            "/.well-known/agent-card.json" => whole(200, &wire::card(state.version, state.manner, state.address)),
            _ => whole(404, &json!({})),
        });
    }
    let Ok(body) = body.collect().await else { return Ok(whole(400, &json!({}))) };
    let Ok(mut call) = serde_json::from_slice::<Value>(&body.to_bytes()) else { return Ok(whole(400, &json!({}))) };
    call["version"] = json!(head.headers.get("a2a-version").and_then(|value| value.to_str().ok()));
    state.inner().requests.push(call.clone());
    state.changed();
    let method = call["method"].as_str().unwrap_or_default();
    let is_known = wire::METHODS.iter().any(|(old, new)| match state.version {
        Version::V03 => *old == method,
        Version::V10 => *new == method && call["version"] == "1.0",
    });
    if !is_known {
        return Ok(whole(200, &wire::refusal(-32601, "no such method")));
    }
    Ok(match method {
        "tasks/get" | "GetTask" => whole(200, &about_task(&state, &call, None)),
        "tasks/cancel" | "CancelTask" => whole(200, &about_task(&state, &call, Some("canceled"))),
        _ => sent(&state, &call, connection),
    })
}

fn about_task(state: &State, call: &Value, change: Option<&'static str>) -> Value {
    let id = call["params"]["id"].as_str().unwrap_or_default();
    let mut inner = state.inner();
    let Some(task) = inner.tasks.get_mut(id) else { return wire::refusal(-32001, "task not found") };
    if let Some(change) = change {
        task.state = change;
    }
    wire::result(&wire::task(state.version, id, &task.context, task.state, &json!([])))
}

fn sent(state: &Arc<State>, call: &Value, connection: u64) -> Response<ChannelBody> {
    let message = &call["params"]["message"];
    let words = message["parts"][0]["text"].as_str().unwrap_or_default().to_owned();
    let deed = Deed::of(&words);
    match deed {
        Deed::Status => return whole(500, &json!({ "error": "broken", "key": "sk-0123456789abcdefghijklmnop" })),
        Deed::Refuse => return whole(200, &wire::refusal(-32603, "the model gemini-x is not found")),
        Deed::Forget => state.inner().tasks.clear(),
        _ => {}
    }
    let mut inner = state.inner();
    let given = message["taskId"].as_str().map(str::to_owned);
    inner.begun += u64::from(given.is_none());
    let number = inner.begun;
    let id = given.clone().unwrap_or_else(|| format!("task-{number}"));
    if let Some(known) = given {
        match inner.tasks.get(&known) {
            None => return whole(200, &wire::refusal(-32001, "task not found")),
            Some(task) if task.state != "input-required" => {
                return whole(200, &wire::refusal(-32600, "the task is in a terminal state"));
            }
            Some(_) => {}
        }
    }
    let context = message["contextId"].as_str().map_or_else(|| format!("context-{number}"), str::to_owned);
    let task = inner.tasks.entry(id.clone()).or_insert(Task { context, asked_on: None, state: "working" });
    let teller = wire::Teller { version: state.version, id: id.clone(), context: task.context.clone() };
    let decision = message["parts"][0]["data"].clone();
    let asked_on = task.asked_on.take();
    let is_aborted = asked_on.is_some_and(|asked_on| inner.closed.contains(&asked_on));
    let events = if decision["outcome"].is_string() {
        wire::decided(&teller, &decision, is_aborted)
    } else {
        wire::events(&teller, state.manner, &words)
    };
    let ending = match (state.manner, deed) {
        _ if decision["outcome"].is_string() => "input-required",
        (_, Deed::Fail) => "failed",
        (_, Deed::Hang | Deed::Half | Deed::Early | Deed::Garbage) => "working",
        (Manner::Coder, _) => "input-required",
        (Manner::Plain | Manner::Whole, _) => "completed",
    };
    if let Some(task) = inner.tasks.get_mut(&id) {
        task.state = ending;
        task.asked_on = (deed == Deed::Ask).then_some(connection);
    }
    drop(inner);
    if state.manner == Manner::Whole {
        let said =
            json!([{ "artifactId": "answer", "parts": [wire::text(state.version, &format!("You said: {words}"))] }]);
        return whole(200, &wire::result(&wire::wrapped_task(state.version, &id, &teller.context, ending, &said)));
    }
    streamed(deed, events)
}

fn streamed(deed: Deed, events: Vec<Value>) -> Response<ChannelBody> {
    let (mut sink, body) = ChannelBody::new();
    for event in events {
        sink.event(&wire::result(&event));
    }
    match deed {
        Deed::Hang => sink.stay(),
        Deed::Half => sink.cut(),
        Deed::Garbage => sink.raw(Bytes::from_static(b"data: {\"jsonrpc\": \"2.0\", \"resu\n\n")),
        _ => {}
    }
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

fn whole(status: u16, body: &Value) -> Response<ChannelBody> {
    let (mut sink, channel): (Sink, ChannelBody) = ChannelBody::new();
    sink.raw(Bytes::from(body.to_string()));
    let mut response = Response::new(channel);
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
