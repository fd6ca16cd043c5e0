//! An agent, as far as the bridge can see: a client of its tool server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gembridge_core::model::{ClientTool, Content, Opaque, ReturnOutcome, ToolReturn};
use gembridge_core::tool_host::{HostedCall, HostedTools, Offer, ToolHost, ToolNews};
use gembridge_tools::{Config, ToolBridge};
use rmcp::model::{CallToolRequestParams, CallToolResult, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

/// Longer than anything here takes on a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(1);

pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(PATIENCE, what).await.expect("in time")
}

pub async fn bridge() -> ToolBridge {
    ToolBridge::start(Config { progress: Duration::from_millis(20), ..Config::default() }).await.unwrap()
}

/// An endpoint with these tools on offer, each without arguments of its own.
pub fn endpoint(bridge: &ToolBridge, tools: &[&str]) -> HostedTools {
    let mut endpoint = bridge.open().unwrap();
    drop(endpoint.list.offer(offer(tools)));
    endpoint
}

pub fn offer(tools: &[&str]) -> Offer {
    Offer { tools: tools.iter().map(|name| tool(name, r#"{"type":"object"}"#)).collect(), format: None }
}

pub fn tool(name: &str, schema: &str) -> ClientTool {
    let schema = Some(Opaque(Bytes::copy_from_slice(schema.as_bytes())));
    ClientTool { name: name.into(), description: None, schema }
}

/// What the server said unasked.
#[derive(Debug, PartialEq)]
pub enum Told {
    ListChanged,
    Progress(f64),
}

#[derive(Clone)]
pub struct Ear(mpsc::Sender<Told>);

impl Ear {
    pub fn new(told: mpsc::Sender<Told>) -> Self {
        Self(told)
    }
}

impl ClientHandler for Ear {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.send(Told::ListChanged).await.unwrap();
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.send(Told::Progress(progress.progress)).await.unwrap();
    }
}

pub struct Agent {
    pub client: RunningService<RoleClient, Ear>,
    pub told: mpsc::Receiver<Told>,
    calls: TaskTracker,
}

impl Agent {
    pub async fn connect(endpoint: &HostedTools) -> Self {
        let header = &endpoint.server.headers[0];
        assert_eq!(header.0, "Authorization");
        let token = header.1.strip_prefix("Bearer ").unwrap();
        let config = StreamableHttpClientTransportConfig::with_uri(endpoint.server.url.as_str()).auth_header(token);
        let transport = StreamableHttpClientTransport::from_config(config);
        let (ear, told) = mpsc::channel(1_000);
        let client = soon(Ear::new(ear).serve(transport)).await.unwrap();
        Self::new(client, told)
    }

    pub fn new(client: RunningService<RoleClient, Ear>, told: mpsc::Receiver<Told>) -> Self {
        Self { client, told, calls: TaskTracker::new() }
    }

    pub async fn tools(&self) -> Vec<String> {
        let listed = soon(self.client.list_all_tools()).await.unwrap();
        listed.into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    /// A call that is made now and awaited later.
    pub fn begin(&self, tool: &str, arguments: Value) -> JoinHandle<CallToolResult> {
        self.calls.spawn(self.call(tool, arguments))
    }

    pub fn call(&self, tool: &str, arguments: Value) -> impl Future<Output = CallToolResult> + Send + 'static {
        let peer = self.client.peer().clone();
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        async move { soon(peer.call_tool(request)).await.unwrap() }
    }
}

/// The next call at an endpoint.
pub async fn called(news: &mut mpsc::Receiver<ToolNews>) -> HostedCall {
    match soon(news.recv()).await {
        Some(ToolNews::Called(call)) => call,
        other => panic!("not a call: {other:?}"),
    }
}

pub fn done(content: Vec<Content>) -> ToolReturn {
    ToolReturn { outcome: ReturnOutcome::Done, content }
}

pub fn text_of(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| block.as_text()).map(|text| text.text.as_str()).collect()
}

pub fn arguments_of(call: &HostedCall) -> &str {
    std::str::from_utf8(&call.arguments.0).unwrap()
}

pub fn named(name: &str) -> Arc<str> {
    name.into()
}
