//! The CLI as a guest has it: inside the fence it answers, and even with its own tools on it reaches no file of the operator's.

use std::fs;

use gembridge_core::turn::PermissionPolicy;
use gembridge_drivers::setup::Audience;
use serde_json::json;

use super::gemini_fixture::{GeminiAgent, allow, calling, told_to_the_model, turn_answering};
use super::tool_server::HostTools;

#[tokio::test(flavor = "multi_thread")]
async fn fence_leaves_the_cli_what_it_needs_for_a_turn_with_a_tool_of_ours() {
    let weather = HostTools::start("get_weather", "sunny");
    let mut plan = GeminiAgent::chat(&[]).await;
    plan.plan.setup.audience = Audience::Guests;
    let fixture = plan.start();
    let mut client = fixture.session_with_tools(weather.server()).await;
    assert_eq!(client.turn("ping").await.finished(), "You said: ping");
    let turned = client.turn(&calling("mcp_host-tools_get_weather", json!({"city": "Oslo"}))).await;
    assert_eq!((turned.finished().as_str(), weather.calls().len()), ("done", 1));
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fence_keeps_the_shell_of_the_cli_from_the_operators_files() {
    let mut plan = GeminiAgent::chat(&["run_shell_command"]).await;
    plan.plan.setup.audience = Audience::Guests;
    plan.plan.policy = PermissionPolicy::ask();
    let fixture = plan.start();
    let secret = fixture.folder.path().join("key");
    fs::write(&secret, "canary").unwrap();
    let mut client = fixture.session().await;
    let command = format!("echo in the shell; cat {}", secret.display());
    let turned = turn_answering(&mut client, &calling("run_shell_command", json!({"command": command})), allow).await;
    assert_eq!(turned.finished(), "done");
    let told = told_to_the_model(&fixture.api.model_calls()[1]);
    assert!(told.contains("in the shell") && told.contains("Permission denied") && !told.contains("canary"), "{told}");
    fixture.end().await;
}
