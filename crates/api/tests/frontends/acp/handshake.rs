//! Who is let in, and how a client begins.

use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::acp::support::agents;
use crate::acp::support::client::{Client, soon};
use crate::acp::support::server::{ADMIN, ANN, BOB, PANIC, TestServer};

#[tokio::test]
async fn a_connection_has_a_name_and_initialize_tells_what_there_is() {
    let server = TestServer::new(&agents::echo());
    let mut client = server.connect("/acp").await;
    let name = client.head.headers()["acp-connection-id"].to_str().unwrap().to_owned();
    let result = client.initialize().await;
    assert_eq!(result["protocolVersion"], 1);
    let capabilities = &result["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], true);
    assert_eq!(capabilities["promptCapabilities"], json!({ "image": true, "audio": false, "embeddedContext": true }));
    assert_eq!(capabilities["sessionCapabilities"], json!({ "list": {}, "resume": {}, "close": {}, "delete": {} }));
    assert_eq!(result["agentInfo"]["name"], "played");
    let ours = &result["_meta"]["gembridge"];
    assert_eq!((&ours["connectionId"], &ours["agent"]), (&json!(name), &json!("played")));
    assert_eq!((&ours["mode"], &ours["demo"]), (&json!("chat"), &json!(false)));
}

#[tokio::test]
async fn s5_a_key_is_asked_for_before_the_101_and_every_spelling_of_it_counts() {
    let server = TestServer::new(&agents::echo());
    let status = async |path: &str, headers: &[(&str, &str)]| {
        Client::open(server.address, path, headers).await.map(|_| ()).map_err(|(status, _)| status)
    };
    let bearer = format!("Bearer {ANN}");
    let offered = format!("acp.v1, bearer.{ANN}");
    for (path, headers, expected) in [
        ("/acp", &[][..], Err(401)),
        ("/acp", &[("authorization", "Bearer gb-nobody")][..], Err(401)),
        ("/acp", &[("authorization", bearer.as_str())][..], Ok(())),
        ("/acp", &[("x-api-key", ANN)][..], Ok(())),
        ("/acp", &[("sec-websocket-protocol", offered.as_str())][..], Ok(())),
        ("/acp", &[("authorization", bearer.as_str()), ("origin", "https://evil.example")][..], Err(403)),
        ("/acp", &[("authorization", bearer.as_str()), ("origin", "http://localhost:3000")][..], Ok(())),
        ("/acp?key=gb-ann", &[("authorization", bearer.as_str())][..], Err(400)),
        ("/acp?token=gb-ann", &[("authorization", bearer.as_str())][..], Err(400)),
        ("/acp?token=gb-ann", &[][..], Err(401)),
        ("/acp?ticket=gb-ann", &[][..], Err(401)),
        ("/acp?limit=many", &[("authorization", bearer.as_str())][..], Err(400)),
        ("/acp?after=1&limit=1", &[("authorization", bearer.as_str())][..], Err(400)),
        ("/acp?frobnicate=1", &[("authorization", bearer.as_str())][..], Err(400)),
        ("/acp?session=nonsense", &[("authorization", bearer.as_str())][..], Err(404)),
    ] {
        assert_eq!(status(path, headers).await, expected, "{path} {headers:?}");
    }
}

#[tokio::test]
async fn a_browser_gets_back_the_protocol_that_it_offered() {
    let server = TestServer::new(&agents::echo());
    let key = format!("bearer.{ANN}");
    for (offered, selected) in [(format!("{key}, acp.v1"), "acp.v1"), (key.clone(), key.as_str())] {
        let client = Client::open(server.address, "/acp", &[("sec-websocket-protocol", &offered)]).await.unwrap();
        assert_eq!(client.head.headers()["sec-websocket-protocol"], selected);
    }
}

#[tokio::test]
async fn what_is_no_websocket_is_told_to_become_one() {
    let server = TestServer::new(&agents::echo());
    let head = plain(&server, "GET /acp HTTP/1.1", "").await;
    assert!(head.starts_with("HTTP/1.1 426"), "{head}");
    assert!(head.contains("upgrade: websocket"), "{head}");
}

/// The head and the body of a plain request with Ann's key.
async fn plain(server: &TestServer, line: &str, body: &str) -> String {
    plain_as(server, ANN, line, body).await
}

async fn plain_as(server: &TestServer, key: &str, line: &str, body: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let length = body.len();
    let json = if body.is_empty() {
        String::new()
    } else {
        format!("content-type: application/json\r\ncontent-length: {length}\r\n")
    };
    let request =
        format!("{line}\r\nhost: localhost\r\nauthorization: Bearer {key}\r\nconnection: close\r\n{json}\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn s5_a_ticket_is_good_once_and_stands_for_the_key_that_asked_for_it() {
    let server = TestServer::new(&agents::echo());
    let ticket = async || {
        let answer = plain(&server, "POST /acp/ticket HTTP/1.1", "{}").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let body: serde_json::Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert_eq!(body["expiresIn"], 30);
        body["ticket"].as_str().unwrap().to_owned()
    };
    let (one, two) = (ticket().await, ticket().await);
    let path = format!("/acp?ticket={one}");
    let mut client = Client::open(server.address, &path, &[]).await.expect("a ticket is as good as a key");
    client.initialize().await;
    assert_eq!(Client::open(server.address, &path, &[]).await.map(|_| ()).unwrap_err().0, 401, "it is used up");
    let offered = format!("acp.v1, ticket.{two}");
    let mut client = Client::open(server.address, "/acp", &[("sec-websocket-protocol", &offered)]).await.unwrap();
    client.initialize().await;
    server.keys.revoke(&crate::acp::support::server::digest(ANN));
    assert_eq!(client.closed().await.code, 1008, "a ticket ends with its key");
}

#[tokio::test]
async fn f4_the_tickets_of_one_key_are_bounded_and_leave_room_for_other_keys() {
    let server = TestServer::new(&agents::echo());
    let statuses = async |key: &str, count: usize| {
        let mut statuses = Vec::new();
        for _ in 0..count {
            let answer = plain_as(&server, key, "POST /acp/ticket HTTP/1.1", "{}").await;
            statuses.push(answer.split(' ').nth(1).unwrap().to_owned());
        }
        statuses
    };
    let of_ann = statuses(ANN, 70).await;
    assert!(of_ann[..64].iter().all(|status| status == "200"), "{of_ann:?}");
    assert!(of_ann[64..].iter().all(|status| status == "429"), "{of_ann:?}");
    assert_eq!(statuses(BOB, 1).await, ["200"]);
}

#[tokio::test]
async fn s6_a_revoked_key_closes_its_sockets_and_no_others() {
    let server = TestServer::new(&agents::echo());
    let mut ann = server.client().await;
    let mut bob = server.connect_as(BOB, "/acp").await;
    bob.initialize().await;
    server.keys.revoke(&crate::acp::support::server::digest(ANN));
    let closed = ann.closed().await;
    assert_eq!((closed.code, closed.reason.as_str()), (1008, "the key was revoked"));
    assert_eq!(bob.call("$/ping", json!({})).await, Ok(json!({})));
}

#[tokio::test]
async fn on_acp_initialize_comes_first_and_at_the_root_anything_may() {
    let server = TestServer::new(&agents::echo());
    let mut hasty = server.connect("/acp").await;
    hasty.request("session/new", json!({ "cwd": "/", "mcpServers": [] })).await;
    assert_eq!(hasty.closed().await.code, 1002);

    let mut first = server.connect("/").await;
    let session = first.new_session().await;
    let id = first.prompt(&session, "one").await;
    assert_eq!(first.answer(id).await.unwrap()["stopReason"], "end_turn");

    let mut second = server.connect("/").await;
    let id = second.prompt(&session, "two").await;
    let messages = second.until(|message| message["id"] == id).await;
    assert_eq!(crate::acp::support::client::said(&messages), "you said two");
}

#[tokio::test]
async fn what_is_no_message_is_answered_and_ends_nothing() {
    let server = TestServer::new(&agents::echo());
    let mut client = server.client().await;
    for (text, code) in [
        ("{", -32700),
        ("nonsense", -32700),
        (r#"[{"jsonrpc":"2.0","id":7,"method":"$/ping"}]"#, -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, -32600),
    ] {
        client.send_text(text).await;
        let answer = client.next().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(null), &json!(code)), "{text}");
    }
    client.send_raw(Message::binary(vec![1, 2, 3])).await;
    assert_eq!(client.call("no/such/method", json!({})).await.unwrap_err()["code"], -32601);
    assert_eq!(client.call("_gembridge/nonsense", json!({})).await.unwrap_err()["code"], -32601);
    assert_eq!(client.call("session/prompt", json!({})).await.unwrap_err()["code"], -32602);
    assert_eq!(client.call("$/ping", json!({})).await, Ok(json!({})));
    assert_eq!(client.call("authenticate", json!({ "methodId": "x" })).await, Ok(json!({})));
}

#[tokio::test]
async fn r13_a_draining_gateway_sends_idle_clients_away_and_waits_for_turns() {
    let agents = agents::silent();
    let mut server = TestServer::new(&agents);
    let mut idle = server.client().await;
    let mut busy = server.client().await;
    let session = busy.new_session().await;
    let id = busy.prompt(&session, "work").await;
    agents.until_prompts(0, 1).await;
    server.stop.drain.cancel();
    server.face.drain();
    assert_eq!(idle.closed().await.code, 1001);
    agents.does(0, [crate::acp::support::text("finished"), crate::acp::support::done()]).await;
    assert_eq!(busy.answer(id).await.unwrap()["stopReason"], "end_turn");
    assert_eq!(busy.closed().await.code, 1001);
    server.face.settle().await;
    server.ended().await;
    assert_eq!(server.face.connections(), 0);
}

#[tokio::test]
async fn a_client_that_reads_nothing_does_not_hold_up_the_end() {
    let agents = agents::silent();
    let mut server = TestServer::new(&agents);
    let mut client = server.client().await;
    let session = client.new_session().await;
    client.prompt(&session, "work").await;
    client.named("_gembridge/turn_started").await;
    let piece = "x".repeat(1 << 20);
    for _ in 0..40 {
        agents.does(0, [crate::acp::support::text(&piece)]).await;
    }
    server.stop.drain.cancel();
    server.face.drain();
    server.sessions.shutdown().await;
    server.face.end();
    crate::acp::support::client::soon(server.face.settle()).await;
    server.ended().await;
}

#[tokio::test]
async fn f15_a_request_is_answered_under_its_id_to_the_byte() {
    let server = TestServer::new(&agents::echo());
    let mut client = server.client().await;
    for id in ["1e400", "-1E+999", "1.50", "123456789012345678901234567890", r#""\u0061""#] {
        for method in ["$/ping", "session/list"] {
            client.send_text(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)).await;
            let answer = client.receive_text().await.expect("the connection lives");
            assert!(answer.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},""#)), "{answer}");
        }
    }
    assert_eq!(server.face.connections(), 1);
}

#[tokio::test]
async fn f15_a_connection_that_panics_is_not_counted_any_more() {
    let server = TestServer::new(&agents::echo());
    let mut client = server.client().await;
    assert_eq!(server.face.connections(), 1);
    client.notify(PANIC, json!({})).await;
    client.closed().await;
    // The socket closes a little before the rest of the connection is dropped.
    let forgotten = async {
        while server.face.connections() != 0 {
            tokio::task::yield_now().await;
        }
    };
    soon(forgotten).await;
}

#[tokio::test]
async fn f15_parameters_by_position_are_refused_and_numbers_of_any_size_are_answered() {
    let server = TestServer::new(&agents::echo());
    let mut client = server.connect_as(ADMIN, "/acp").await;
    client.initialize().await;
    let session = client.new_session().await;
    for params in [format!(r#"["{session}"]"#), format!(r#"{{"sessionId":"{session}","at":1e400}}"#)] {
        for method in ["_agent/own", "session/set_mode", "session/prompt", "session/close"] {
            client
                .send_text(&format!(r#"{{"jsonrpc":"2.0","id":"{method}","method":"{method}","params":{params}}}"#))
                .await;
            let answer = client.find(|message| message["id"] == method).await;
            assert!(answer["error"].is_object() || !params.starts_with('['), "{params}: {answer}");
        }
    }
    assert_eq!(server.face.connections(), 1, "the connection lives");
}
