//! What is asked for in vain, in either version.

use gembridge_core::test_support::{ScriptedAgents, done, text};
use serde_json::{Value, json};

use super::support::{BOTH, TestServer, Version};
use crate::openai::support::http::post;
use crate::scenarios::gateway::Gateway;

async fn server() -> TestServer {
    TestServer::new(&Gateway::new(&ScriptedAgents::new(|_| vec![vec![text("a"), done()]]))).await
}

#[tokio::test]
async fn what_is_no_call_is_refused_by_the_codes_of_json_rpc() {
    let server = server().await;
    for (body, code) in [
        ("{", -32700),
        ("[]", -32600),
        (r#"{"id":1,"method":"tasks/get","params":{"id":"x"}}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"tasks/get","params":{"id":"x"}}"#, -32600),
        (r#"{"jsonrpc":"2.0","method":"tasks/get","params":{"id":"x"}}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"tasks/get"}"#, -32600),
        (r#"{"jsonrpc":"2.0","method":"tasks/fly","params":{}}"#, -32601),
        (r#"{"jsonrpc":"2.0","method":"message/send","params":{}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/fly","params":{}}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":["x"]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"x"}}"#, -32001),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/set","params":{}}"#, -32003),
    ] {
        let answer = server.raw(&[], body).await;
        assert_eq!(answer["error"]["code"], code, "{body}: {answer}");
    }
}

#[tokio::test]
async fn the_version_is_named_by_the_header_the_query_or_the_method() {
    let server = server().await;
    let get =
        |method: &str| json!({ "jsonrpc": "2.0", "id": "a", "method": method, "params": { "id": "x" } }).to_string();
    for (headers, method, code) in [
        (&[][..], "tasks/get", -32001),
        (&[], "GetTask", -32001),
        (&[("a2a-version", "")], "tasks/get", -32001),
        (&[("a2a-version", "0.3")], "tasks/get", -32001),
        (&[("a2a-version", "0.3")], "GetTask", -32601),
        (&[("a2a-version", "1.0")], "GetTask", -32001),
        (&[("a2a-version", "1.0")], "tasks/get", -32601),
        (&[("a2a-version", "99.0")], "GetTask", -32009),
    ] {
        let answer = server.raw(headers, &get(method)).await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &json!("a")), "{headers:?} {method}");
    }
    let answer = post(server.address, "/a2a/?A2A-Version=99", &[], get("GetTask")).await.whole().await.json();
    assert_eq!(answer["error"]["code"], -32009);
}

#[tokio::test]
async fn errors_of_the_newer_version_name_their_reason() {
    let error = server().await.call(Version::V10, "GetTask", json!({ "id": "x" })).await.unwrap_err();
    assert_eq!(error["data"][0]["@type"], "type.googleapis.com/google.rpc.ErrorInfo");
    assert_eq!(
        (&error["data"][0]["reason"], &error["data"][0]["domain"]),
        (&json!("TASK_NOT_FOUND"), &json!("a2a-protocol.org"))
    );
}

#[tokio::test]
async fn a_message_that_is_not_in_order_is_refused_before_a_session_begins() {
    let agents = ScriptedAgents::new(|_| vec![vec![done()]]);
    let gateway = Gateway::new(&agents);
    let server = TestServer::new(&gateway).await;
    for version in BOTH {
        let sound = version.text("m", "hi");
        let with = |field: &str, value: Value| {
            let mut message = sound.clone();
            message[field] = value;
            message
        };
        let raw = match version {
            Version::V03 => json!({ "kind": "file", "file": { "bytes": "AAAA", "mimeType": "application/x-odd" } }),
            Version::V10 => json!({ "raw": "AAAA", "mediaType": "application/x-odd" }),
        };
        for (message, code) in [
            (json!({}), -32602),
            (with("parts", json!([])), -32602),
            (with("parts", json!([{ "kind": "hologram" }])), -32602),
            (with("parts", json!([raw])), -32005),
            (with("role", json!("agent")), -32602),
            (with("messageId", json!("")), -32602),
            (with("taskId", json!("no-such-task")), -32001),
            (with("contextId", json!(gembridge_core::model::SessionId::new().to_string())), -32602),
            (with("metadata", json!({ "tools": [{ "name": "a b" }] })), -32602),
            (with("metadata", json!({ "_model": 7 })), -32602),
        ] {
            let error = server.call(version, version.method("message/send"), json!({ "message": message })).await;
            assert_eq!(error.expect_err("it is refused")["code"], code, "{version:?} {message}");
        }
        let params = json!({ "message": sound, "configuration": { "historyLength": -1 } });
        let error = server.call(version, version.method("message/send"), params).await.unwrap_err();
        assert_eq!(error["code"], -32602);
    }
    assert_eq!(agents.opened(), 0);
    assert!(gateway.sessions.live().is_empty(), "no session is left behind");
}

#[tokio::test]
async fn s3_a_body_that_is_no_json_by_its_type_is_refused() {
    let server = server().await;
    let answer = post(server.address, "/a2a", &[("content-type", "text/plain")], "{}".to_owned()).await.whole().await;
    assert_eq!(answer.status, 415);
}
