//! What a call costs while it waits, beyond what its idle connection costs anyway.

#[path = "support/agent.rs"]
#[expect(dead_code, reason = "shared with the tests of the bridge, which use all of it")]
mod agent;
#[path = "support/raw.rs"]
mod raw;

use gembridge_core::tool_host::HostedTools;
use gembridge_tools::{Config, ToolBridge};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use agent::{called, endpoint, soon};
use raw::{read_until, request, usual};

const ENDPOINTS: usize = 40;
const CALLS: usize = 50;
const BOUND: usize = 4 * 1024;

/// The memory of this process that is in use, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

async fn idle(bridge: &ToolBridge, endpoint: &HostedTools, session: &str) -> TcpStream {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let headers = usual(&endpoint.server, &[("mcp-session-id", session)]);
    let mut stream = raw::send(bridge, &request("POST", "/mcp", &headers, ping)).await;
    read_until(&mut stream, "\r\n0\r\n\r\n").await;
    stream
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_call_that_waits_costs_less_than_four_kilobytes() {
    let bridge = ToolBridge::start(Config::default()).await.unwrap();
    let mut endpoints = Vec::new();
    for _ in 0..ENDPOINTS {
        let endpoint = endpoint(&bridge, &["slow"]);
        let session = raw::session(&bridge, &endpoint.server).await;
        let mut streams = Vec::new();
        for _ in 0..CALLS {
            streams.push(idle(&bridge, &endpoint, &session).await);
        }
        endpoints.push((endpoint, session, streams));
    }
    let before = resident();
    let mut waiting = Vec::new();
    for (endpoint, session, streams) in &mut endpoints {
        for (id, stream) in streams.iter_mut().enumerate() {
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"slow","arguments":{{"n":1}},"_meta":{{"progressToken":1}}}}}}"#,
                id + 2
            );
            let headers = usual(&endpoint.server, &[("mcp-session-id", session.as_str())]);
            soon(stream.write_all(request("POST", "/mcp", &headers, &call).as_bytes())).await.unwrap();
            waiting.push(called(&mut endpoint.news).await);
        }
    }
    let each = resident().saturating_sub(before) / waiting.len();
    println!("{} calls wait, {each} bytes each", waiting.len());
    assert_eq!(bridge.counts().await.calls, ENDPOINTS * CALLS);
    assert!(each < BOUND, "a call that waits costs {each} bytes");
    bridge.shutdown().await;
}
