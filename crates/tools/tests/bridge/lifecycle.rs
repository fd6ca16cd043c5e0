//! What is left when an endpoint closes: nothing.

use std::time::Duration;

use gembridge_tools::{Counts, ToolBridge};
use serde_json::json;
use tokio::runtime::Handle;

use crate::agent::{Agent, bridge, called, endpoint, soon, text_of};
use crate::raw::{self, request, status, usual};

/// Waits until nothing is open any more.
async fn settled(bridge: &ToolBridge) {
    soon(async {
        while bridge.counts().await != Counts::default() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn whoever_waits_at_a_place_that_closes_is_told_so() {
    let bridge = bridge().await;
    let mut endpoint = endpoint(&bridge, &["slow"]);
    let agent = Agent::connect(&endpoint).await;
    let waiting = agent.begin("slow", json!({}));
    let call = called(&mut endpoint.news).await;
    let server = endpoint.server.clone();
    drop(endpoint.list);
    let result = soon(waiting).await.unwrap();
    assert_eq!(result.is_error, Some(true));
    assert!(text_of(&result).contains("has ended"), "{result:?}");
    assert!(call.reply.is_closed() || call.reply.send(crate::agent::done(vec![])).is_err());
    assert_eq!(status(&bridge, &request("POST", "/mcp", &usual(&server, &[]), raw::INITIALIZE)).await, 401);
    settled(&bridge).await;
    bridge.shutdown().await;
}

#[tokio::test]
async fn a_reply_that_is_dropped_is_a_failure_of_the_tool() {
    let bridge = bridge().await;
    let mut endpoint = endpoint(&bridge, &["slow"]);
    let agent = Agent::connect(&endpoint).await;
    let waiting = agent.begin("slow", json!({}));
    drop(called(&mut endpoint.news).await);
    assert_eq!(soon(waiting).await.unwrap().is_error, Some(true));
    bridge.shutdown().await;
}

#[tokio::test]
async fn a_thousand_places_leave_nothing_behind() {
    let bridge = bridge().await;
    let before = Handle::current().metrics().num_alive_tasks();
    for cycle in 0..1_000 {
        let mut endpoint = endpoint(&bridge, &["slow"]);
        let session = raw::session(&bridge, &endpoint.server).await;
        let body = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"slow","arguments":{}}}"#;
        let headers = usual(&endpoint.server, &[("mcp-session-id", &session)]);
        let mut stream = raw::send(&bridge, &request("POST", "/mcp", &headers, body)).await;
        let call = called(&mut endpoint.news).await;
        match cycle % 3 {
            // The session goes while the call waits, the agent goes first, or all ends well.
            0 => {
                drop(endpoint);
                raw::read_until(&mut stream, "has ended").await;
            }
            1 => drop(stream),
            _ => {
                call.reply.send(crate::agent::done(vec![])).unwrap();
                raw::read_until(&mut stream, "\"id\":7").await;
            }
        }
    }
    settled(&bridge).await;
    soon(async {
        while Handle::current().metrics().num_alive_tasks() > before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    bridge.shutdown().await;
}

#[tokio::test]
async fn shutting_down_answers_whoever_waits_and_resolves() {
    let bridge = bridge().await;
    let mut endpoint = endpoint(&bridge, &["slow"]);
    let agent = Agent::connect(&endpoint).await;
    let waiting = agent.begin("slow", json!({}));
    let _call = called(&mut endpoint.news).await;
    soon(bridge.shutdown()).await;
    assert_eq!(soon(waiting).await.unwrap().is_error, Some(true));
    assert_eq!(bridge.counts().await, Counts::default());
    assert!(gembridge_core::tool_host::ToolHost::open(&bridge).is_err());
}
