//! An ACP client over a WebSocket, one message after another.

use std::net::SocketAddr;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::gateway::Gateway;
use super::http::PATIENCE;
use super::messages::{is_answer, outcome};

pub struct Client {
    runtime: Runtime,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    last_id: u64,
    /// How many messages have come.
    pub received: usize,
}

/// What a client says that understands everything that is ours.
pub fn hello() -> Value {
    json!({ "protocolVersion": 1, "_meta": { "gembridge": { "extensions": true } } })
}

impl Client {
    /// With the admin's key.
    pub fn connect(gateway: &Gateway, path: &str) -> Self {
        Self::connect_to(gateway.address, &gateway.key, path).expect("it is let in")
    }

    /// The status of a refusal.
    pub fn connect_to(address: SocketAddr, key: &str, path: &str) -> Result<Self, u16> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut request = format!("ws://{address}{path}").into_client_request().unwrap();
        if !key.is_empty() {
            let bearer = HeaderValue::from_str(&format!("Bearer {key}")).unwrap();
            request.headers_mut().insert("authorization", bearer);
        }
        let connected =
            runtime.block_on(async { tokio::time::timeout(PATIENCE, connect_async(request)).await.unwrap() });
        match connected {
            Ok((socket, _)) => Ok(Self { runtime, socket, last_id: 0, received: 0 }),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("no connection: {error}"),
        }
    }

    /// Connected and known.
    pub fn known(gateway: &Gateway, path: &str) -> Self {
        let mut client = Self::connect(gateway, path);
        client.call("initialize", &hello()).unwrap();
        client
    }

    pub fn new_session(&mut self) -> String {
        let result = self.call("session/new", &json!({ "cwd": "/", "mcpServers": [] })).unwrap();
        result["sessionId"].as_str().unwrap().to_owned()
    }

    pub fn send(&mut self, message: &Value) {
        self.runtime.block_on(self.socket.send(Message::text(message.to_string()))).unwrap();
    }

    pub fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }));
        self.last_id
    }

    pub fn prompt(&mut self, session: &str, text: &str) -> u64 {
        self.request("session/prompt", &json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] }))
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let id = self.request(method, params);
        let messages = self.until(|message| is_answer(message, id));
        outcome(&messages)
    }

    /// A whole turn: everything that came, and its end.
    pub fn turn(&mut self, session: &str, text: &str) -> (Vec<Value>, Result<Value, Value>) {
        let id = self.prompt(session, text);
        let messages = self.until(|message| is_answer(message, id));
        let end = outcome(&messages);
        (messages, end)
    }

    /// Everything up to and with the message that fits.
    #[track_caller]
    pub fn until(&mut self, mut fits: impl FnMut(&Value) -> bool) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let message = self.next().unwrap_or_else(|code| panic!("closed with {code} after {all:#?}"));
            let is_last = fits(&message);
            all.push(message);
            if is_last {
                return all;
            }
        }
    }

    #[track_caller]
    pub fn named(&mut self, method: &str) -> Value {
        self.until(|message| message["method"] == method).pop().unwrap()
    }

    /// The next message, or the code that the connection ended with.
    pub fn next(&mut self) -> Result<Value, u16> {
        let next = self.runtime.block_on(async {
            loop {
                let next = tokio::time::timeout(PATIENCE, self.socket.next()).await.expect("nothing came in time");
                match next {
                    Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
                    Some(Ok(Message::Close(frame))) => return Err(frame.map_or(1005, |frame| frame.code.into())),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return Err(0),
                }
            }
        });
        self.received += usize::from(next.is_ok());
        next
    }

    /// The code that the connection ends with; what comes before is let go.
    pub fn closed(&mut self) -> u16 {
        loop {
            if let Err(code) = self.next() {
                return code;
            }
        }
    }
}
