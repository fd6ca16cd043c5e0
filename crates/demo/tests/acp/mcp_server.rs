//! A tiny MCP server on loopback that remembers what it was asked.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Barrier, mpsc, oneshot};
use tokio::task::JoinSet;

use crate::agent::DEADLINE;

pub struct McpServer {
    port: u16,
    asked: Receiver<Value>,
    _stop: oneshot::Sender<()>,
}

struct Tools {
    asked: SyncSender<Value>,
    pair: Barrier,
    /// How often the server has forgotten its sessions.
    forgotten: AtomicU64,
    /// Whether the tool `grown` is offered.
    grown: AtomicBool,
    /// To whoever listens.
    listener: Mutex<Option<mpsc::Sender<Bytes>>>,
}

impl Tools {
    fn new(asked: SyncSender<Value>) -> Self {
        Self {
            asked,
            pair: Barrier::new(2),
            forgotten: AtomicU64::new(0),
            grown: AtomicBool::new(false),
            listener: Mutex::default(),
        }
    }

    fn listened_to(&self) -> Response<Reply> {
        let (listener, said) = mpsc::channel(16);
        *self.listener.lock().unwrap() = Some(listener);
        respond("text/event-stream", ": hello\n\n".to_owned(), After::Said(said))
    }

    fn grow(&self) {
        self.grown.store(true, Ordering::Relaxed);
        let changed = r#"data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        let listener = self.listener.lock().unwrap().clone().expect("somebody listens");
        listener.try_send(format!("{changed}\n\n").into()).unwrap();
    }

    fn session(&self) -> String {
        format!("s-{}", self.forgotten.load(Ordering::Relaxed))
    }
}

impl McpServer {
    pub fn start() -> Self {
        let (stop, stopped) = oneshot::channel();
        let (asked_in, asked) = sync_channel(10_000);
        let (port_in, port) = sync_channel(1);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                port_in.send(listener.local_addr().unwrap().port()).unwrap();
                let tools = Arc::new(Tools::new(asked_in));
                tokio::select! {
                    () = accept(listener, tools) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { port: port.recv().unwrap(), asked, _stop: stop }
    }

    /// The entry for `mcpServers`.
    pub fn entry(&self) -> Value {
        json!({
            "type": "http", "name": "test", "url": format!("http://127.0.0.1:{}/mcp", self.port),
            "headers": [{"name": "Authorization", "value": "Bearer secret"}],
        })
    }

    /// Waits until a message with this method has arrived.
    pub fn wait_for(&self, method: &str) -> Value {
        loop {
            let message = self.asked.recv_timeout(DEADLINE).unwrap();
            if message["method"] == method {
                return message;
            }
        }
    }
}

async fn accept(listener: TcpListener, tools: Arc<Tools>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let tools = Arc::clone(&tools);
        connections.spawn(async move {
            let service = hyper::service::service_fn(move |request| answer(Arc::clone(&tools), request));
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
        });
    }
}

async fn answer(tools: Arc<Tools>, request: Request<Incoming>) -> Result<Response<Reply>, Infallible> {
    let (head, body) = request.into_parts();
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    if header(AUTHORIZATION.as_str()) != Some("Bearer secret") {
        return Ok(status(StatusCode::UNAUTHORIZED));
    }
    if head.method == Method::GET {
        return Ok(tools.listened_to());
    }
    let message: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
    let greeted = header("mcp-session-id") == Some(&tools.session());
    tools.asked.send(message.clone()).unwrap();
    if message["method"] != "initialize" && !greeted {
        return Ok(status(StatusCode::NOT_FOUND));
    }
    Ok(match message["method"].as_str().unwrap() {
        "initialize" => {
            assert_eq!(message["params"]["protocolVersion"], "2025-06-18");
            let result = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "test", "version": "1"}});
            let mut response = plain(&message, &result);
            response.headers_mut().insert("mcp-session-id", tools.session().parse().unwrap());
            response
        }
        "tools/list" => plain(&message, &tool_list(&tools, &message)),
        "tools/call" => call(&tools, &message).await,
        _ => status(StatusCode::ACCEPTED),
    })
}

/// Two pages, so that the client has to follow the cursor.
fn tool_list(tools: &Tools, message: &Value) -> Value {
    let tool = |name| json!({"name": name, "description": format!("does {name}"), "inputSchema": {"type": "object"}});
    if message["params"]["cursor"].is_null() {
        return json!({"tools": [tool("add"), tool("boom")], "nextCursor": "2"});
    }
    let mut names = vec!["progress", "never", "pair", "bad", "forget", "grow", "picture", "long"];
    names.extend(tools.grown.load(Ordering::Relaxed).then_some("grown"));
    json!({"tools": names.into_iter().map(tool).collect::<Vec<_>>()})
}

async fn call(tools: &Tools, message: &Value) -> Response<Reply> {
    let arguments = &message["params"]["arguments"];
    let text = |text: String| json!({"content": [{"type": "text", "text": text}]});
    match message["params"]["name"].as_str().unwrap() {
        "add" => {
            plain(message, &text((arguments["a"].as_i64().unwrap() + arguments["b"].as_i64().unwrap()).to_string()))
        }
        "boom" => plain(message, &json!({"content": [{"type": "text", "text": "it exploded"}], "isError": true})),
        "progress" => {
            let token = &message["params"]["_meta"]["progressToken"];
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 1}});
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": text("after progress".to_owned())});
            stream(format!(": hello\n\ndata: {progress}\n\nid: 7\ndata: {answer}\n\n"), After::Open)
        }
        "never" => stream(": working\n\n".to_owned(), After::Open),
        "pair" => {
            tools.pair.wait().await;
            plain(message, &text(format!("met {}", arguments["n"])))
        }
        "grow" => {
            tools.grow();
            plain(message, &text("growing".to_owned()))
        }
        "grown" => plain(message, &text(format!("round {}", arguments["round"]))),
        "picture" => plain(message, &json!({"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}]})),
        "long" => plain(message, &text(format!("begin{}end", "x".repeat(5 << 20)))),
        "forget" => {
            tools.forgotten.fetch_add(1, Ordering::Relaxed);
            plain(message, &text("forgotten".to_owned()))
        }
        _ => {
            let error =
                json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "bad tool"}});
            respond("application/json", error.to_string(), After::End)
        }
    }
}

fn plain(message: &Value, result: &Value) -> Response<Reply> {
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    respond("application/json", answer.to_string(), After::End)
}

fn stream(text: String, after: After) -> Response<Reply> {
    respond("text/event-stream", text, after)
}

fn respond(kind: &str, text: String, after: After) -> Response<Reply> {
    Response::builder().header(CONTENT_TYPE, kind).body(Reply { text: Some(text.into()), after }).unwrap()
}

fn status(status: StatusCode) -> Response<Reply> {
    Response::builder().status(status).body(Reply { text: None, after: After::End }).unwrap()
}

/// What a body does once its text is sent.
enum After {
    End,
    Open,
    /// Sends what comes.
    Said(mpsc::Receiver<Bytes>),
}

struct Reply {
    text: Option<Bytes>,
    after: After,
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match (self.text.take(), &mut self.after) {
            (Some(text), _) => Poll::Ready(Some(Ok(Frame::data(text)))),
            (None, After::End) => Poll::Ready(None),
            (None, After::Open) => Poll::Pending,
            (None, After::Said(said)) => said.poll_recv(context).map(|text| text.map(|text| Ok(Frame::data(text)))),
        }
    }
}
