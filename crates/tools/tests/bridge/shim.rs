//! Agents that speak over their standard streams only.

use gembridge_core::tool_host::{HostedTools, ToolNews};
use gembridge_tools::shim::{self, ShimError};
use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, ClientRequest, Request};
use rmcp::service::PeerRequestOptions;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::agent::{Agent, Ear, Told, bridge, called, done, endpoint, offer, soon, text_of};
use gembridge_core::model::Content;

/// The agent's end of a shim that runs.
fn started(endpoint: &HostedTools) -> (DuplexStream, JoinSet<Result<(), ShimError>>) {
    let (ours, theirs) = duplex(64 * 1024);
    let (url, token) =
        (endpoint.server.url.clone(), endpoint.server.headers[0].1.strip_prefix("Bearer ").unwrap().to_owned());
    let mut running = JoinSet::new();
    running.spawn(async move {
        let (read, write) = split(theirs);
        shim::run(read, write, &url, &token).await
    });
    (ours, running)
}

async fn connected(endpoint: &HostedTools) -> (Agent, JoinSet<Result<(), ShimError>>) {
    let (ours, running) = started(endpoint);
    let (ear, told) = mpsc::channel(1_000);
    let client = soon(Ear::new(ear).serve(split(ours))).await.unwrap();
    (Agent::new(client, told), running)
}

#[tokio::test]
async fn lists_calls_and_notifications_pass_through_the_shim() {
    let bridge = bridge().await;
    let mut endpoint = endpoint(&bridge, &["look"]);
    let (mut agent, mut running) = connected(&endpoint).await;
    assert_eq!(agent.tools().await, ["look"]);
    let waiting: Vec<_> = (0..3).map(|n| agent.begin("look", json!({"n": n}))).collect();
    let calls = [called(&mut endpoint.news).await, called(&mut endpoint.news).await, called(&mut endpoint.news).await];
    assert!(matches!(soon(agent.told.recv()).await, Some(Told::Progress(_))));
    for call in calls.into_iter().rev() {
        call.reply.send(done(vec![Content::text("x".repeat(1_000_000))])).unwrap();
    }
    for waiting in waiting {
        assert_eq!(text_of(&soon(waiting).await.unwrap()).len(), 1_000_000);
    }
    // Until the stream for it is open, the library keeps what it has to tell.
    let read = endpoint.list.offer(offer(&["other"]));
    soon(async { while agent.told.recv().await != Some(Told::ListChanged) {} }).await;
    assert_eq!(agent.tools().await, ["other"]);
    soon(read).await;
    soon(agent.client.cancel()).await.unwrap();
    soon(running.join_next()).await.unwrap().unwrap().unwrap();
    assert_eq!(bridge.counts().await.sessions, 0, "the shim ends its session");
    bridge.shutdown().await;
}

#[tokio::test]
async fn a_call_that_is_cancelled_through_the_shim_is_withdrawn() {
    let bridge = bridge().await;
    let mut endpoint = endpoint(&bridge, &["slow"]);
    let (agent, _running) = connected(&endpoint).await;
    let request = ClientRequest::CallToolRequest(Request::new(CallToolRequestParams::new("slow")));
    let handle = soon(agent.client.send_cancellable_request(request, PeerRequestOptions::default())).await.unwrap();
    let call = called(&mut endpoint.news).await;
    soon(handle.cancel(None)).await.unwrap();
    assert!(matches!(soon(endpoint.news.recv()).await, Some(ToolNews::Withdrawn(id)) if id == call.id));
    bridge.shutdown().await;
}

#[tokio::test]
async fn an_agent_that_goes_away_takes_its_calls_along() {
    let bridge = bridge().await;
    let mut endpoint = endpoint(&bridge, &["slow"]);
    let (agent, mut running) = connected(&endpoint).await;
    let waiting = agent.begin("slow", json!({}));
    let call = called(&mut endpoint.news).await;
    waiting.abort();
    drop(agent);
    assert!(matches!(soon(endpoint.news.recv()).await, Some(ToolNews::Withdrawn(id)) if id == call.id));
    soon(running.join_next()).await.unwrap().unwrap().unwrap();
    bridge.shutdown().await;
}

#[tokio::test]
async fn a_request_that_cannot_be_answered_gets_an_error_and_so_does_a_line_that_is_no_message() {
    let bridge = bridge().await;
    let endpoint = endpoint(&bridge, &["look"]);
    let (stream, _running) = started(&endpoint);
    drop(endpoint);
    let (read, mut write) = split(stream);
    let mut lines = BufReader::new(read).lines();
    write
        .write_all(b"hello\n\n{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"initialize\",\"params\":{}}\n")
        .await
        .unwrap();
    let first = soon(lines.next_line()).await.unwrap().unwrap();
    assert_eq!(first, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"this line is not a message"}}"#);
    let second = soon(lines.next_line()).await.unwrap().unwrap();
    assert!(second.starts_with(r#"{"jsonrpc":"2.0","id":"a","error":"#) && second.contains("401"), "{second}");
    bridge.shutdown().await;
}

#[tokio::test]
async fn an_address_that_is_none_is_refused() {
    for url in ["", "mcp", "https://127.0.0.1:1/mcp", "http://127.0.0.1/mcp"] {
        let refused = shim::run(tokio::io::empty(), tokio::io::sink(), url, "t").await;
        assert!(matches!(refused, Err(ShimError::Address(_))), "{url}");
    }
}
