//! Agents that take no tool servers over HTTP: this program, started again, stands in for the server.

use std::process::Stdio;

use gembridge_sdk::Tool;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::fixture::{Fake, helper};

#[tokio::test]
async fn the_tools_of_the_program_are_listed_through_the_stand_in() {
    let fake = Fake::new();
    let look = Tool::with_schema("look", "Looks", &json!({"type": "object"}), |_| async { Ok("seen".to_owned()) });
    let adapter = fake.adapter(&["--without", "http"]).tool(look).build().unwrap();
    let gate = fake.path("gate");
    let asked = adapter.stream(format!("until {} ;; say done", gate.display())).await.unwrap();
    let server = fake.receives("session/new").await["params"]["mcpServers"][0].clone();
    assert_eq!((server["command"].as_str(), &server["args"]), (helper().to_str(), &json!(["mcp-shim"])));
    let listed = listed(&server).await;
    assert!(listed.contains("look"), "{listed}");
    std::fs::write(gate, "").unwrap();
    assert_eq!(asked.finish().await.unwrap().text, "done");
    adapter.close().await;
}

/// What the stand-in lists, started as the agent is told to start it.
#[expect(clippy::disallowed_methods, reason = "a test plays the agent, which starts this program")]
async fn listed(server: &Value) -> String {
    let mut command = tokio::process::Command::new(server["command"].as_str().unwrap());
    command.arg("mcp-shim").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    for variable in server["env"].as_array().unwrap() {
        command.env(variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap());
    }
    let mut shim = command.spawn().unwrap();
    let (mut input, output) = (shim.stdin.take().unwrap(), shim.stdout.take().unwrap());
    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let mut lines = BufReader::new(output).lines();
    for (message, awaited) in [
        (json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}), Some(1)),
        (json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), None),
        (json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}), Some(2)),
    ] {
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        while let Some(id) = awaited {
            let line = lines.next_line().await.unwrap().expect("the stand-in answers");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == id {
                if id == 2 {
                    return answer["result"]["tools"].to_string();
                }
                break;
            }
        }
    }
    String::new()
}
