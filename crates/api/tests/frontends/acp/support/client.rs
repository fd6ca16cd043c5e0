//! A client that speaks ACP over a WebSocket of somebody else's making.

use std::collections::VecDeque;
use std::net::SocketAddr;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue, Response};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::agents::PATIENCE;

pub struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    pub head: Response<Option<Vec<u8>>>,
    /// Came while something else was waited for.
    unread: VecDeque<Value>,
    last_id: u64,
}

/// What a connection ended with.
#[derive(Debug, PartialEq, Eq)]
pub struct Closed {
    pub code: u16,
    pub reason: String,
}

impl Client {
    /// The status and the body of a refusal.
    pub async fn open(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<Self, (u16, String)> {
        let mut request = format!("ws://{address}{path}").into_client_request().expect("a good address");
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            request.headers_mut().append(name, HeaderValue::from_str(value).expect("a value"));
        }
        match soon(connect_async(request)).await {
            Ok((socket, head)) => Ok(Self { socket, head, unread: VecDeque::new(), last_id: 0 }),
            Err(Error::Http(response)) => {
                let body = response.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                Err((response.status().as_u16(), body.into_owned()))
            }
            Err(error) => panic!("no connection: {error}"),
        }
    }

    pub async fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string()).await;
    }

    pub async fn send_text(&mut self, text: &str) {
        soon(self.socket.send(Message::text(text))).await.expect("the socket takes it");
    }

    pub async fn send_raw(&mut self, message: Message) {
        soon(self.socket.send(message)).await.expect("the socket takes it");
    }

    /// Sends a request; its id.
    pub async fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// The answer to a request: its result, or its error.
    pub async fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let answer = self.find(|message| message["id"] == id && message.get("method").is_none()).await;
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["result"].clone()),
        }
    }

    pub async fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.request(method, params).await;
        self.answer(id).await
    }

    pub async fn initialize(&mut self) -> Value {
        self.call("initialize", hello()).await.expect("it answers")
    }

    pub async fn new_session(&mut self) -> String {
        let result = self.call("session/new", json!({ "cwd": "/nowhere", "mcpServers": [] })).await.expect("a session");
        result["sessionId"].as_str().expect("an id").to_owned()
    }

    /// Sends a prompt; the id of its request.
    pub async fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.request("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await
    }

    /// The next message of this method.
    pub async fn named(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method).await
    }

    /// The next message that fits; those before it stay for later.
    pub async fn find(&mut self, mut fits: impl FnMut(&Value) -> bool) -> Value {
        if let Some(at) = self.unread.iter().position(&mut fits) {
            return self.unread.remove(at).expect("it is there");
        }
        loop {
            let message =
                self.receive().await.unwrap_or_else(|closed| panic!("{closed:?} before it came: {:?}", self.unread));
            if fits(&message) {
                return message;
            }
            self.unread.push_back(message);
        }
    }

    /// The next message, in the order in which they came.
    pub async fn next(&mut self) -> Value {
        match self.unread.pop_front() {
            Some(message) => message,
            None => self.receive().await.unwrap_or_else(|closed| panic!("{closed:?}")),
        }
    }

    /// Everything up to and with the message that fits.
    pub async fn until(&mut self, mut fits: impl FnMut(&Value) -> bool) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let message = self.next().await;
            let is_last = fits(&message);
            all.push(message);
            if is_last {
                return all;
            }
        }
    }

    async fn receive(&mut self) -> Result<Value, Closed> {
        self.receive_text().await.map(|text| serde_json::from_str(&text).expect("JSON"))
    }

    /// The next message as it was written.
    pub async fn receive_text(&mut self) -> Result<String, Closed> {
        loop {
            match soon(self.socket.next()).await {
                Some(Ok(Message::Text(text))) => return Ok(text.to_string()),
                Some(Ok(Message::Close(frame))) => {
                    let frame = frame.expect("a close says why");
                    return Err(Closed { code: frame.code.into(), reason: frame.reason.to_string() });
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(Closed { code: 0, reason: error.to_string() }),
                None => return Err(Closed { code: 0, reason: "gone".into() }),
            }
        }
    }

    /// What comes until the other end closes, and how it does.
    pub async fn drain(&mut self) -> (Vec<Value>, Closed) {
        let mut all: Vec<Value> = self.unread.drain(..).collect();
        loop {
            match self.receive().await {
                Ok(message) => all.push(message),
                Err(closed) => return (all, closed),
            }
        }
    }

    pub async fn closed(&mut self) -> Closed {
        self.drain().await.1
    }
}

/// What a client says that understands everything that is ours.
pub fn hello() -> Value {
    json!({ "protocolVersion": 1, "clientCapabilities": {}, "_meta": { "gembridge": { "extensions": true } } })
}

pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing happened in time")
}

/// The numbers of the entries that messages show, in order.
pub fn seqs(messages: &[Value]) -> Vec<u64> {
    let seq = |message: &Value| {
        let params = &message["params"];
        params["_meta"]["gembridge"]["seq"].as_u64().or_else(|| params["seq"].as_u64())
    };
    messages.iter().filter_map(seq).collect()
}

/// The text that messages show of the agent.
pub fn said(messages: &[Value]) -> String {
    let chunks = messages.iter().map(|message| &message["params"]["update"]);
    let chunks = chunks.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}
