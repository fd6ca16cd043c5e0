//! Bare HTTP, for what a well-behaved client never does.

use std::fmt::Write as _;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use gembridge_core::driver::ToolServer;
use gembridge_tools::ToolBridge;

use crate::agent::soon;

pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"0"}}}"#;
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A request, with every header as it is given.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    text + &format!("content-length: {}\r\n\r\n{body}", body.len())
}

/// Sends it on a connection of its own, and leaves that open.
pub async fn send(bridge: &ToolBridge, request: &str) -> TcpStream {
    let mut stream = soon(TcpStream::connect(bridge.address())).await.unwrap();
    soon(stream.write_all(request.as_bytes())).await.unwrap();
    stream
}

/// Reads until this is there. Fails when it does not come.
pub async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut read = Vec::new();
    loop {
        let count = soon(stream.read_buf(&mut read)).await.unwrap();
        let text = String::from_utf8_lossy(&read);
        if text.contains(wanted) {
            return text.into_owned();
        }
        assert_ne!(count, 0, "the connection ended before `{wanted}`: {text}");
    }
}

pub async fn status(bridge: &ToolBridge, request: &str) -> u16 {
    let mut stream = send(bridge, request).await;
    let head = read_until(&mut stream, "\r\n").await;
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

/// What an ordinary message goes with.
pub fn usual<'a>(server: &'a ToolServer, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut headers = vec![
        ("host", "127.0.0.1"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("authorization", server.headers[0].1.as_str()),
    ];
    headers.extend(more);
    headers
}

/// Begins a session; gives its id.
pub async fn session(bridge: &ToolBridge, server: &ToolServer) -> String {
    let mut stream = send(bridge, &request("POST", "/mcp", &usual(server, &[]), INITIALIZE)).await;
    let answer = read_until(&mut stream, "serverInfo").await;
    let id = answer
        .lines()
        .find_map(|line| line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id")))
        .map(|(_, id)| id.trim().to_owned())
        .unwrap();
    let initialized = request("POST", "/mcp", &usual(server, &[("mcp-session-id", &id)]), INITIALIZED);
    assert_eq!(status(bridge, &initialized).await, 202);
    id
}
