//! Who is let in.

use crate::agent::{bridge, called, endpoint};
use crate::raw::{self, INITIALIZE, request, status, usual};

#[tokio::test]
async fn nobody_comes_in_without_a_token() {
    let bridge = bridge().await;
    let endpoint = endpoint(&bridge, &["look"]);
    for method in ["POST", "GET", "DELETE"] {
        for token in [None, Some("Bearer"), Some("Bearer x"), Some("Basic abc")] {
            let mut headers = usual(&endpoint.server, &[]);
            headers.retain(|(name, _)| *name != "authorization");
            headers.extend(token.map(|token| ("authorization", token)));
            assert_eq!(
                status(&bridge, &request(method, "/mcp", &headers, INITIALIZE)).await,
                401,
                "{method} {token:?}"
            );
        }
    }
    bridge.shutdown().await;
}

#[tokio::test]
async fn a_token_does_not_open_the_place_of_another() {
    let bridge = bridge().await;
    let (ours, theirs) = (endpoint(&bridge, &["ours"]), endpoint(&bridge, &["theirs"]));
    let session = raw::session(&bridge, &theirs.server).await;
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let of_theirs = [("mcp-session-id", session.as_str())];
    let stolen = request("POST", "/mcp", &usual(&ours.server, &of_theirs), list);
    assert_eq!(status(&bridge, &stolen).await, 404);
    let rightful = request("POST", "/mcp", &usual(&theirs.server, &of_theirs), list);
    assert_eq!(status(&bridge, &rightful).await, 200);
    bridge.shutdown().await;
}

#[tokio::test]
async fn other_hosts_other_pages_and_other_paths_are_refused() {
    let bridge = bridge().await;
    let endpoint = endpoint(&bridge, &["look"]);
    let with = |host: &'static str, more: &[(&'static str, &'static str)], path: &str| {
        let mut headers = usual(&endpoint.server, more);
        headers[0].1 = host;
        request("POST", path, &headers, INITIALIZE)
    };
    for (sent, answered) in [
        (with("127.0.0.1", &[], "/mcp"), 200),
        (with("evil.example", &[], "/mcp"), 403),
        (with("127.0.0.1", &[("host", "localhost")], "/mcp"), 403),
        (with("localhost", &[("origin", "https://evil.example")], "/mcp"), 403),
        (with("localhost", &[("origin", "null")], "/mcp"), 403),
        (with("localhost", &[("origin", "http://localhost:5173")], "/mcp"), 200),
        (with("localhost", &[], "/"), 404),
        (with("localhost", &[], "/mcp/"), 404),
    ] {
        assert_eq!(status(&bridge, &sent).await, answered, "{sent}");
    }
    bridge.shutdown().await;
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused() {
    let config = gembridge_tools::Config { body_limit: 10_000, ..gembridge_tools::Config::default() };
    let bridge = gembridge_tools::ToolBridge::start(config).await.unwrap();
    let endpoint = endpoint(&bridge, &["look"]);
    let large = INITIALIZE.replace("raw", &"x".repeat(10_000));
    assert_eq!(status(&bridge, &request("POST", "/mcp", &usual(&endpoint.server, &[]), &large)).await, 413);
    bridge.shutdown().await;
}

#[tokio::test]
async fn one_agent_cannot_open_sessions_without_end() {
    let config = gembridge_tools::Config { sessions: 2, ..gembridge_tools::Config::default() };
    let bridge = gembridge_tools::ToolBridge::start(config).await.unwrap();
    let mut endpoint = endpoint(&bridge, &["look"]);
    let server = endpoint.server.clone();
    let within =
        |session: &str, body: &str| request("POST", "/mcp", &usual(&server, &[("mcp-session-id", session)]), body);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"look"}}"#;

    let busy = raw::session(&bridge, &server).await;
    let _first = raw::send(&bridge, &within(&busy, call)).await;
    let _call = called(&mut endpoint.news).await;
    let idle = raw::session(&bridge, &server).await;
    let newest = raw::session(&bridge, &server).await;
    assert_eq!(status(&bridge, &within(&idle, ping)).await, 404, "the oldest ends in which nothing waits");
    assert_eq!(status(&bridge, &within(&busy, ping)).await, 200);

    let _second = raw::send(&bridge, &within(&newest, call)).await;
    let _other_call = called(&mut endpoint.news).await;
    assert_eq!(status(&bridge, &request("POST", "/mcp", &usual(&server, &[]), INITIALIZE)).await, 503);
    bridge.shutdown().await;
}
