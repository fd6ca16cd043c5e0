//! What the agent is told before the prompt, and what becomes of a start that fails.

use std::time::Duration;

use gembridge_sdk::{ErrorKind, Phase, TurnEvent};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::fixture::{Fake, pass};

#[tokio::test]
async fn the_handshake_names_the_client_and_offers_nothing_that_is_off() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    adapter.evaluate("say hi").await.unwrap();
    let params = &fake.received("initialize")[0]["params"];
    assert_eq!(params["protocolVersion"], 1);
    let nothing = json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
    assert_eq!(params["clientCapabilities"], nothing);
    assert_eq!(params["clientInfo"]["name"], "gembridge");
    assert_eq!(fake.received("authenticate"), Vec::<Value>::new(), "methods of login are ignored");
    adapter.close().await;
}

#[tokio::test]
async fn files_are_offered_one_by_one() {
    let fake = Fake::new();
    let adapter = fake.in_workspace(&[]).file_reads(true).build().unwrap();
    adapter.evaluate("say hi").await.unwrap();
    let fs = &fake.received("initialize")[0]["params"]["clientCapabilities"]["fs"];
    assert_eq!(fs, &json!({"readTextFile": true, "writeTextFile": false}));
    adapter.close().await;
}

#[tokio::test]
async fn an_agent_that_hangs_in_its_handshake_is_an_error_of_the_request_with_the_seconds() {
    let fake = Fake::new();
    let startup = Duration::from_millis(61_500);
    let adapter = fake.adapter(&["--mode", "hang-init"]).startup_timeout(startup).build().unwrap();
    let stream = adapter.stream("say hi").await.unwrap();
    fake.receives("initialize").await;
    pass(startup).await;
    let error = stream.finish().await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Request, &ErrorKind::Start), "{error}");
    assert!(error.message.contains("did not finish its handshake within 61.5 s"), "{error}");
    adapter.close().await;
    fake.is_deserted().await;
}

#[tokio::test]
async fn an_agent_that_ends_at_once_or_wants_a_login_is_named_so() {
    for (mode, kind) in [("crash-start", ErrorKind::Start), ("needs-auth", ErrorKind::NeedsLogin)] {
        let fake = Fake::new();
        let adapter = fake.adapter(&["--mode", mode]).build().unwrap();
        let error = adapter.evaluate("say hi").await.unwrap_err();
        assert_eq!((error.phase, &error.kind), (Phase::Request, &kind), "{mode}: {error}");
        adapter.close().await;
    }
}

#[tokio::test]
async fn a_model_that_the_agent_does_not_list_is_an_error_with_the_list() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).model("no-such-model").build().unwrap();
    let error = adapter.evaluate("say hi").await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Request, &ErrorKind::UnknownModel));
    assert!(error.message.contains("no-such-model") && error.message.contains("fake-"), "{error}");
    assert_eq!(fake.received("session/prompt"), Vec::<Value>::new());
    adapter.close().await;
}

#[tokio::test]
async fn an_agent_without_a_list_decides_about_its_models_itself_and_a_refusal_is_a_warning() {
    let fake = Fake::new();
    let adapter = fake.adapter(&["--without", "models,config"]).model("anything").build().unwrap();
    let reply = adapter.evaluate("say hi").await.unwrap();
    assert_eq!(reply.text, "hi");
    assert!(reply.warnings.iter().any(|warning| warning.contains("anything")), "{:?}", reply.warnings);
    adapter.close().await;
}

#[tokio::test]
async fn a_model_and_a_mode_are_set_before_the_prompt() {
    let fake = Fake::new();
    let adapter = fake.adapter(&["--without", "config"]).model("fake-tiny").mode("yolo").build().unwrap();
    let reply = adapter.evaluate("say hi").await.unwrap();
    assert_eq!(reply.warnings, Vec::<String>::new());
    assert_eq!(fake.received("session/set_model")[0]["params"]["modelId"], "fake-tiny");
    assert_eq!(fake.received("session/set_mode")[0]["params"]["modeId"], "yolo");
    adapter.close().await;
}

#[tokio::test]
async fn a_mode_that_the_agent_does_not_have_is_a_warning_and_an_event() {
    let fake = Fake::new();
    let adapter = fake.adapter(&["--without", "modes,config"]).mode("no-such-mode").build().unwrap();
    let mut stream = adapter.stream("say hi").await.unwrap();
    let mut warned = Vec::new();
    while let Some(event) = stream.next().await {
        if let TurnEvent::Warning(warning) = event {
            warned.push(warning);
        }
    }
    let reply = stream.finish().await.unwrap();
    assert_eq!(reply.text, "hi");
    assert_eq!(reply.warnings, warned);
    assert!(warned[0].contains("no-such-mode"), "{warned:?}");
    adapter.close().await;
}

#[tokio::test]
async fn the_tools_of_the_program_come_first_and_further_servers_after_them() {
    let fake = Fake::new();
    let tool = gembridge_sdk::Tool::with_schema("look", "Looks", &json!({"type": "object"}), |_| async {
        Ok("seen".to_owned())
    });
    let header = ("X-Key".to_owned(), "k".to_owned());
    let adapter = fake.adapter(&[]).tool(tool).mcp_server("more", "http://127.0.0.1:9/mcp", [header]).build().unwrap();
    adapter.evaluate("say hi").await.unwrap();
    let servers = fake.received("session/new")[0]["params"]["mcpServers"].clone();
    let (own, more) = (&servers[0], &servers[1]);
    assert_eq!(own["type"], "http");
    let url = own["url"].as_str().unwrap();
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/mcp"), "{url}");
    assert_eq!(own["headers"][0]["name"], "Authorization");
    let token = own["headers"][0]["value"].as_str().unwrap().strip_prefix("Bearer ").unwrap();
    assert!(token.len() >= 43, "32 random bytes: {token}");
    assert_eq!(status_without_token(url).await, "401");
    assert_eq!(more["name"], "more");
    assert_eq!(more["headers"], json!([{"name": "X-Key", "value": "k"}]));
    adapter.close().await;
}

#[tokio::test]
async fn further_arguments_reach_the_program_after_those_of_the_profile() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).args(["--model", "x"]).build().unwrap();
    let told: Value = serde_json::from_str(&adapter.evaluate("env").await.unwrap().text).unwrap();
    let argv: Vec<_> = told["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert!(argv.ends_with(&["--model", "x"]), "{argv:?}");
    adapter.close().await;
}

/// What the tool server says to somebody without its token.
async fn status_without_token(url: &str) -> String {
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let head = "POST /mcp HTTP/1.1\r\nconnection: close\r\ncontent-type: application/json\r\n\
                accept: application/json, text/event-stream\r\n";
    let request = format!("{head}host: {address}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn the_time_to_start_holds_for_the_handshake_and_the_session_together() {
    let fake = Fake::new();
    // Slow enough that time can be moved while it is about to answer.
    let adapter = fake.adapter(&["--mode", "slow:4000"]).startup_timeout(Duration::from_mins(1)).build().unwrap();
    let stream = adapter.stream("say hi").await.unwrap();
    for method in ["initialize", "session/new"] {
        fake.receives(method).await;
        // Each alone would be in time.
        pass(Duration::from_secs(40)).await;
    }
    let error = stream.finish().await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Request, &ErrorKind::Start), "{error}");
    assert!(error.message.contains("within 60 s"), "{error}");
    assert_eq!(fake.received("session/new").len(), 1, "the handshake itself was in time");
    adapter.close().await;
    fake.is_deserted().await;
}
