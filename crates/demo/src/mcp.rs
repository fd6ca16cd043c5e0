//! A minimal MCP client over streamable HTTP on loopback: enough to list tools and call them.

mod http;
mod sse;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Mutex, Notify};

use crate::connection::Connection;
use crate::wire::McpServer;
use http::{Endpoint, Failure};

const PROTOCOL: &str = "2025-06-18";
/// For everything but `tools/call`, which may take as long as a person takes.
const HANDSHAKE: Duration = Duration::from_secs(20);
const LIST_CHANGED: &str = "notifications/tools/list_changed";

pub(crate) struct Server {
    pub name: String,
    /// Where it is, or why it cannot be reached by the demo.
    endpoint: Result<Endpoint, String>,
    link: Mutex<Option<Link>>,
    /// The tools as they were listed last.
    listed: RefCell<Option<Rc<[Tool]>>>,
    last_id: Cell<u64>,
}

/// An initialised connection, in MCP's sense: a session id that goes with every request.
#[derive(Clone)]
struct Link {
    session: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Tool {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default, rename = "inputSchema")]
    pub input_schema: Value,
}

impl Server {
    pub(crate) fn all(named: Vec<McpServer>) -> Rc<[Rc<Self>]> {
        named.into_iter().map(|server| Rc::new(Self::new(server))).collect()
    }

    fn new(named: McpServer) -> Self {
        let endpoint = match (named.transport.as_deref(), &named.url) {
            (Some("http"), Some(url)) => Endpoint::new(url, named.headers),
            (transport, _) => {
                Err(format!("the demo agent speaks MCP over `http` only, not `{}`", transport.unwrap_or("stdio")))
            }
        };
        Self { name: named.name, endpoint, link: Mutex::new(None), listed: RefCell::default(), last_id: Cell::new(0) }
    }

    /// The tools as they were listed last; asked for if they never were.
    pub(crate) async fn known_tools(&self) -> Result<Rc<[Tool]>, String> {
        let known = self.listed.borrow().clone();
        match known {
            Some(tools) => Ok(tools),
            None => self.tools().await,
        }
    }

    /// Asks the server for its tools, page by page.
    pub(crate) async fn tools(&self) -> Result<Rc<[Tool]>, String> {
        let mut tools = Vec::new();
        let mut params = json!({});
        loop {
            let page = self.within(HANDSHAKE, self.request(self.next_id(), "tools/list", &params)).await?;
            let listed = Vec::<Tool>::deserialize(&page["tools"])
                .map_err(|error| format!("its tools are unreadable: {error}"))?;
            let empty = listed.is_empty();
            tools.extend(listed);
            match page["nextCursor"].as_str() {
                Some(cursor) if !empty => params = json!({"cursor": cursor}),
                _ => break,
            }
        }
        let tools: Rc<[Tool]> = tools.into();
        *self.listed.borrow_mut() = Some(Rc::clone(&tools));
        Ok(tools)
    }

    /// Lists the tools, and again whenever the server says that they changed, until it hangs up.
    async fn attend(&self) {
        let (opened, changed) = (Notify::new(), Notify::new());
        let over = Cell::new(false);
        let listening = async {
            let heard = |message: &Value| {
                if message["method"] == LIST_CHANGED {
                    changed.notify_one();
                }
            };
            // A server that speaks only when it is asked refuses the stream: then one listing is all there is.
            drop(self.listen(|| opened.notify_one(), heard).await);
            over.set(true);
            opened.notify_one();
            changed.notify_one();
        };
        let listing = async {
            // Listed once it can be heard: what changes in between would be missed otherwise.
            drop(tokio::time::timeout(HANDSHAKE, opened.notified()).await);
            loop {
                drop(self.tools().await);
                if over.get() {
                    return;
                }
                changed.notified().await;
            }
        };
        tokio::join!(listening, listing);
    }

    async fn listen(&self, opened: impl FnOnce(), heard: impl FnMut(&Value)) -> Result<(), String> {
        let link = self.link().await?;
        let listened = self.endpoint()?.listen(link.session.as_deref(), opened, heard).await;
        listened.map_err(|failure| failure.to_string())
    }

    /// Makes a request; a server that has forgotten our session is greeted once more.
    async fn request(&self, id: u64, method: &str, params: &Value) -> Result<Value, String> {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let link = self.link().await?;
        let mut sent = self.endpoint()?.request(link.session.as_deref(), &body, id).await;
        if matches!(sent, Err(Failure::SessionGone)) {
            *self.link.lock().await = None;
            let link = self.link().await?;
            sent = self.endpoint()?.request(link.session.as_deref(), &body, id).await;
        }
        sent.map(|answer| answer.result).map_err(|failure| failure.to_string())
    }

    async fn notify(&self, link: &Link, method: &str, params: Value) -> Result<(), String> {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.endpoint()?.notify(link.session.as_deref(), &body).await.map_err(|failure| failure.to_string())
    }

    /// The link, made on first use. Who comes while it is being made waits for it.
    async fn link(&self) -> Result<Link, String> {
        let mut link = self.link.lock().await;
        if let Some(link) = &*link {
            return Ok(link.clone());
        }
        let made = self.within(HANDSHAKE, self.greet()).await?;
        *link = Some(made.clone());
        Ok(made)
    }

    async fn greet(&self) -> Result<Link, String> {
        let id = self.next_id();
        let body = json!({
            "jsonrpc": "2.0", "id": id, "method": "initialize",
            "params": {
                "protocolVersion": PROTOCOL,
                "capabilities": {},
                "clientInfo": {"name": "gembridge-demo", "version": env!("CARGO_PKG_VERSION")},
            },
        });
        let answer = self.endpoint()?.request(None, &body, id).await.map_err(|failure| failure.to_string())?;
        let link = Link { session: answer.session };
        self.notify(&link, "notifications/initialized", json!({})).await?;
        Ok(link)
    }

    async fn within<T>(&self, limit: Duration, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        match tokio::time::timeout(limit, work).await {
            Ok(done) => done,
            Err(_) => Err(format!("it did not answer within {} s", limit.as_secs())),
        }
    }

    fn endpoint(&self) -> Result<&Endpoint, String> {
        self.endpoint.as_ref().map_err(Clone::clone)
    }

    fn next_id(&self) -> u64 {
        self.last_id.set(self.last_id.get() + 1);
        self.last_id.get()
    }
}

/// Greets the servers and lists their tools in the background, as real agents do when a session opens and when a server
/// says that its tools changed.
/// What fails here is tried again, and told, when a prompt asks for it.
pub(crate) fn connect_ahead(connection: &Connection, servers: &[Rc<Server>]) {
    for server in servers.iter().filter(|server| server.endpoint.is_ok()) {
        let server = Rc::clone(server);
        connection.spawn(async move { Box::pin(server.attend()).await });
    }
}

/// Calls a tool and waits as long as it takes. Dropping the future tells the server that nobody waits any more.
pub(crate) async fn call(
    connection: &Rc<Connection>,
    server: &Rc<Server>,
    tool: &str,
    arguments: Value,
) -> Result<Value, String> {
    let id = server.next_id();
    let mut waiting = Waiting { connection: Rc::clone(connection), server: Rc::clone(server), request: Some(id) };
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}});
    let answer = server.request(id, "tools/call", &params).await;
    waiting.request = None;
    answer
}

struct Waiting {
    connection: Rc<Connection>,
    server: Rc<Server>,
    request: Option<u64>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(request) = self.request else { return };
        let server = Rc::clone(&self.server);
        self.connection.spawn(async move {
            let params = json!({"requestId": request, "reason": "the turn was cancelled"});
            let told = async {
                let link = server.link().await?;
                server.notify(&link, "notifications/cancelled", params).await
            };
            // The call is over for us either way.
            drop(server.within(HANDSHAKE, told).await);
        });
    }
}
