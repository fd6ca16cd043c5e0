//! The least MCP server that the CLI accepts: one tool behind a token, plain JSON answers.

use std::io::{self, BufRead, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use gembridge_core::driver::{ServerOrigin, ToolServer};
use serde_json::{Value, json};

pub struct HostTools {
    url: String,
    shop: Arc<Shop>,
}

struct Shop {
    tool: &'static str,
    answer: &'static str,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    calls: Vec<Value>,
    strangers: usize,
}

impl HostTools {
    /// Serves one tool that always answers the same, until the tests end.
    pub fn start(tool: &'static str, answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let shop = Arc::new(Shop { tool, answer, seen: Mutex::default() });
        let owner = Arc::clone(&shop);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shop = Arc::clone(&owner);
                std::thread::spawn(move || shop.serve(&stream));
            }
        });
        Self { url, shop }
    }

    /// What a session is given to reach it.
    pub fn server(&self) -> ToolServer {
        ToolServer {
            name: "host-tools".into(),
            url: self.url.clone(),
            headers: vec![("Authorization".to_owned(), self.shop.token())],
            origin: ServerOrigin::Ours,
        }
    }

    /// The tool calls that came, without what the CLI adds about their progress.
    pub fn calls(&self) -> Vec<Value> {
        self.shop.seen.lock().unwrap().calls.clone()
    }

    /// How many requests came without the token.
    pub fn strangers(&self) -> usize {
        self.shop.seen.lock().unwrap().strangers
    }
}

impl Shop {
    fn token(&self) -> String {
        format!("Bearer token-of-{}", self.tool)
    }

    fn serve(&self, mut stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Ok(Some(request)) = Request::read(&mut reader) {
            let (status, body) = self.answer(&request);
            let body = body.map(|body| body.to_string()).unwrap_or_default();
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
            if stream.write_all((head + &body).as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, request: &Request) -> (&'static str, Option<Value>) {
        if request.authorization.as_deref() != Some(self.token().as_str()) {
            self.seen.lock().unwrap().strangers += 1;
            return ("401 Unauthorized", None);
        }
        if request.method != "POST" {
            return ("405 Method Not Allowed", None);
        }
        let Some(id) = request.body.get("id") else { return ("202 Accepted", None) };
        let result = match request.body["method"].as_str() {
            Some("initialize") => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "host-tools", "version": "1"}}),
            Some("tools/list") => json!({"tools": [{"name": self.tool, "description": "Tells something",
                "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}}}]}),
            Some("tools/call") => {
                let params = &request.body["params"];
                let call = json!({"name": params["name"], "arguments": params["arguments"]});
                self.seen.lock().unwrap().calls.push(call);
                json!({"content": [{"type": "text", "text": self.answer}]})
            }
            _ => json!({}),
        };
        ("200 OK", Some(json!({"jsonrpc": "2.0", "id": id, "result": result})))
    }
}

struct Request {
    method: String,
    authorization: Option<String>,
    body: Value,
}

impl Request {
    /// The next request of a connection; `None` at its end.
    fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Ok(None);
        }
        let method = first.split(' ').next().unwrap_or_default().to_owned();
        let (mut length, mut authorization) = (0, None);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().map_err(io::Error::other)?,
                "authorization" => authorization = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        Ok(Some(Self { method, authorization, body: serde_json::from_slice(&body).unwrap_or_default() }))
    }
}
