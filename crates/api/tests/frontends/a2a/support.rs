//! The front end on a port of its own, and a client of it in either version.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use gembridge_api::a2a::{A2a, A2aConfig, A2aParts, ServedAgent, frontend};
use gembridge_api::identity::{Identity, Rank};
use gembridge_core::model::{AgentName, Principal};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::openai::support::http::{Answer, Stream, get, post};
use crate::scenarios::gateway::{AGENT, Gateway};

pub struct TestServer {
    pub address: SocketAddr,
    _server: JoinSet<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V03,
    V10,
}

pub const BOTH: [Version; 2] = [Version::V03, Version::V10];

impl TestServer {
    pub async fn new(gateway: &Gateway) -> Self {
        Self::with(gateway, A2aConfig::default()).await
    }

    pub async fn with(gateway: &Gateway, config: A2aConfig) -> Self {
        let app = A2a::new(A2aParts {
            sessions: Arc::clone(&gateway.sessions),
            catalog: Arc::clone(&gateway.catalog),
            agents: vec![ServedAgent { name: AgentName::new(AGENT), title: "Played agent".to_owned() }],
            version: "1.2.3",
            config,
        });
        let routes = frontend(&app);
        let routes = routes.open.merge(routes.small).merge(routes.large).layer(from_fn(identify));
        let routes = routes.layer(axum::extract::DefaultBodyLimit::disable());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, routes).await.expect("the server runs") });
        Self { address, _server: server }
    }

    pub async fn get(&self, path: &str) -> Answer {
        get(self.address, path).await
    }

    /// Sends what is not necessarily a call.
    pub async fn raw(&self, headers: &[(&str, &str)], body: &str) -> Value {
        post(self.address, "/a2a", headers, body.to_owned()).await.whole().await.json()
    }

    /// The response to a call, still to be read.
    pub async fn open(&self, version: Version, principal: &str, method: &str, params: Value) -> Stream {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string();
        let header = match version {
            Version::V03 => "0.3",
            Version::V10 => "1.0",
        };
        post(self.address, "/a2a", &[("x-test-principal", principal), ("a2a-version", header)], body).await
    }

    pub async fn call_as(
        &self,
        version: Version,
        principal: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, Value> {
        let answer = self.open(version, principal, method, params).await.whole().await;
        // Where a stream is asked for in vain, the older version says so in one.
        let answer: Value = serde_json::from_str(answer.body.trim_start_matches("data: ")).expect("one message");
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)), "{answer}");
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(answer["error"].clone()),
        }
    }

    pub async fn call(&self, version: Version, method: &str, params: Value) -> Result<Value, Value> {
        self.call_as(version, "ann", method, params).await
    }

    /// Sends a message and gives the task that it led to.
    pub async fn send(&self, version: Version, message: Value) -> Value {
        let method = version.method("message/send");
        let result = self.call(version, method, json!({ "message": message })).await.expect("a task");
        version.task(&result).clone()
    }

    pub async fn stream(&self, version: Version, message: Value) -> Stream {
        self.open(version, "ann", version.method("message/stream"), json!({ "message": message })).await
    }

    pub async fn task(&self, version: Version, id: &Value) -> Value {
        self.call(version, version.method("tasks/get"), json!({ "id": id })).await.expect("the task is there")
    }
}

impl Version {
    /// The name that this version has for a method of 0.3.
    pub fn method(self, name: &'static str) -> &'static str {
        match (self, name) {
            (Self::V03, name) => name,
            (Self::V10, "message/send") => "SendMessage",
            (Self::V10, "message/stream") => "SendStreamingMessage",
            (Self::V10, "tasks/get") => "GetTask",
            (Self::V10, "tasks/list") => "ListTasks",
            (Self::V10, "tasks/cancel") => "CancelTask",
            (Self::V10, "tasks/resubscribe") => "SubscribeToTask",
            (Self::V10, other) => panic!("no name for {other}"),
        }
    }

    pub fn text(self, id: &str, text: &str) -> Value {
        self.message(id, &[self.text_part(text)])
    }

    pub fn message(self, id: &str, parts: &[Value]) -> Value {
        match self {
            Self::V03 => json!({ "kind": "message", "messageId": id, "role": "user", "parts": parts }),
            Self::V10 => json!({ "messageId": id, "role": "ROLE_USER", "parts": parts }),
        }
    }

    pub fn text_part(self, text: &str) -> Value {
        match self {
            Self::V03 => json!({ "kind": "text", "text": text }),
            Self::V10 => json!({ "text": text }),
        }
    }

    pub fn data_part(self, data: &Value) -> Value {
        match self {
            Self::V03 => json!({ "kind": "data", "data": data }),
            Self::V10 => json!({ "data": data }),
        }
    }

    pub fn image_part(self, data: &str) -> Value {
        match self {
            Self::V03 => json!({ "kind": "file", "file": { "bytes": data, "mimeType": "image/png" } }),
            Self::V10 => json!({ "raw": data, "mediaType": "image/png" }),
        }
    }

    /// The task that an answer holds.
    pub fn task(self, result: &Value) -> &Value {
        match self {
            Self::V03 => result,
            Self::V10 => &result["task"],
        }
    }
}

/// The state of a task, in the words of 0.3.
pub fn state(task: &Value) -> String {
    let state = task["status"]["state"].as_str().expect("a state");
    state.trim_start_matches("TASK_STATE_").to_lowercase().replace('_', "-")
}

/// What one event of a stream says, whichever the version.
pub struct Event {
    pub task: Option<Value>,
    pub status: Option<Value>,
    pub artifact: Option<Value>,
}

/// The events of a stream, in the words of 0.3 as far as their frame goes.
pub fn events(version: Version, answer: &Answer) -> Vec<Event> {
    let read = |event: &str| {
        let event: Value = serde_json::from_str(event).expect("JSON");
        let result = event.get("result").unwrap_or_else(|| panic!("{event}")).clone();
        let of_kind = |kind: &str, wrapped: &str| match version {
            Version::V03 => (result["kind"] == kind).then(|| result.clone()),
            Version::V10 => result.get(wrapped).cloned(),
        };
        Event {
            task: of_kind("task", "task"),
            status: of_kind("status-update", "statusUpdate"),
            artifact: of_kind("artifact-update", "artifactUpdate"),
        }
    };
    answer.events().into_iter().map(read).collect()
}

/// The text of all status updates of a kind.
pub fn told(events: &[Event], kind: &str) -> Vec<Value> {
    let of_kind = events.iter().filter_map(|event| event.status.as_ref());
    let of_kind = of_kind.filter(|status| status["metadata"]["coderAgent"]["kind"] == kind);
    of_kind.map(|status| status["status"]["message"]["parts"][0].clone()).collect()
}

/// Stands in for the guard.
async fn identify(mut request: Request, next: Next) -> Response {
    let principal = request.headers().get("x-test-principal").and_then(|value| value.to_str().ok()).unwrap_or("ann");
    let identity = Identity { principal: Principal::new(principal), rank: Rank::User };
    request.extensions_mut().insert(identity);
    next.run(request).await
}
