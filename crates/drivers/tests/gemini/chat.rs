//! The CLI as a plain model: what a call carries, and what a hostile model cannot do with it.

use std::fs;

use gembridge_core::model::{Event, ToolStatus};
use serde_json::{Value, json};

use super::gemini_fixture::{GeminiAgent, calling, only_tool_of, output_of, script, told_to_the_model};
use super::tool_server::HostTools;
use crate::agent_fixture::Turned;

#[tokio::test(flavor = "multi_thread")]
async fn in_chat_one_word_is_one_small_model_call_without_tools() {
    let fixture = GeminiAgent::chat(&[]).await.start();
    let mut client = fixture.session().await;
    let turned = client.turn("ping").await;
    assert_eq!(turned.finished(), "You said: ping");
    let requests = fixture.api.requests();
    assert_eq!(requests.len(), 1, "{:?}", requests.iter().map(|request| &request.path).collect::<Vec<_>>());
    assert!(requests[0].body_bytes < 1500, "{} bytes: {}", requests[0].body_bytes, requests[0].body);
    assert!(requests[0].declared_tools().is_empty(), "{:?}", requests[0].declared_tools());
    assert!(requests[0].path.contains("gemini-3.8-flash:"), "{}", requests[0].path);
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_chat_only_the_tools_of_the_session_are_declared_and_they_run_unasked() {
    let (weather, clock) = (HostTools::start("get_weather", "sunny"), HostTools::start("get_time", "noon"));
    let fixture = GeminiAgent::chat(&[]).await.start();
    let mut first = fixture.session_with_tools(weather.server()).await;
    let mut second = fixture.session_with_tools(clock.server()).await;

    let turned = first.turn(&calling("mcp_host-tools_get_weather", json!({"city": "Oslo"}))).await;
    assert_eq!((turned.finished().as_str(), questions(&turned)), ("done", 0));
    let tool = only_tool_of(&turned);
    assert_eq!((tool.call.status, tool.refused), (Some(ToolStatus::Completed), false));
    assert!(output_of(&tool).contains("sunny"), "{tool:?}");
    assert_eq!(weather.calls(), [json!({"name": "get_weather", "arguments": {"city": "Oslo"}})]);
    let calls = fixture.api.model_calls();
    assert_eq!(calls[0].declared_tools(), ["mcp_host-tools_get_weather"]);
    assert!(told_to_the_model(&calls[1]).contains("sunny"));

    fixture.api.forget_requests();
    second.turn("ping").await;
    let calls = fixture.api.model_calls();
    assert_eq!(calls[0].declared_tools(), ["mcp_host-tools_get_time"], "each session has its own tools");
    assert!(calls[0].body_bytes < 1500, "{} bytes", calls[0].body_bytes);
    assert!(clock.calls().is_empty());
    assert_eq!(weather.strangers() + clock.strangers(), 0, "every request carried the session's own token");
    assert_eq!(fixture.driver.processes().len(), 1);
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_chat_a_hostile_model_reaches_none_of_the_agents_own_tools() {
    let fixture = GeminiAgent::chat(&[]).await.start();
    let folder = fixture.folder.path().canonicalize().unwrap();
    fs::write(folder.join("secret.txt"), "the secret").unwrap();
    let (made, secret) = (folder.join("made"), folder.join("secret.txt"));
    let attempts: [(&str, Value); 12] = [
        ("run_shell_command", json!({"command": format!("touch {}", made.display())})),
        ("run_shell_command", json!({"command": format!("cat {}", secret.display())})),
        ("write_file", json!({"file_path": made, "content": "x"})),
        ("write_file", json!({"file_path": "made", "content": "x"})),
        ("replace", json!({"file_path": secret, "instruction": "i", "old_string": "the", "new_string": "no"})),
        ("read_file", json!({"file_path": secret})),
        ("read_many_files", json!({"include": [secret]})),
        ("list_directory", json!({"dir_path": folder})),
        ("glob", json!({"pattern": "**/*", "dir_path": folder})),
        ("grep_search", json!({"pattern": "secret", "dir_path": folder})),
        ("web_fetch", json!({"prompt": format!("read {}/__requests", fixture.api.url())})),
        ("invoke_agent", json!({"agent_name": "generalist", "prompt": "touch made"})),
    ];
    let mut client = fixture.session().await;
    for (tool, arguments) in attempts {
        fixture.api.forget_requests();
        let turned = client.turn(&calling(tool, arguments)).await;
        assert_eq!((turned.finished().as_str(), questions(&turned)), ("done", 0), "{tool}");
        let calls = fixture.api.requests();
        assert_eq!(calls.len(), 2, "{tool}: the call and its refusal, nothing else");
        let told = told_to_the_model(&calls[1]);
        assert!(told.contains("error") && !told.contains("the secret"), "{tool}: {told}");
    }
    assert!(!made.exists());
    assert_eq!(fs::read_to_string(&secret).unwrap(), "the secret");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_chat_a_tool_that_no_profile_names_is_off_and_ours_run() {
    let mut plan = GeminiAgent::chat(&[]).await;
    // As if every tool of the CLI were one of a newer version: nothing is denied by name.
    plan.plan.setup.profile.tools.native.clear();
    let weather = HostTools::start("get_weather", "sunny");
    let fixture = plan.start();
    let secret = fixture.folder.path().join("secret.txt");
    fs::write(&secret, "the secret").unwrap();
    let mut client = fixture.session_with_tools(weather.server()).await;
    for (tool, arguments) in [
        ("read_file", json!({"file_path": secret})),
        ("run_shell_command", json!({"command": format!("cat {}", secret.display())})),
        ("invoke_agent", json!({"agent_name": "generalist", "prompt": "touch made"})),
    ] {
        fixture.api.forget_requests();
        let turned = client.turn(&calling(tool, arguments)).await;
        assert_eq!((turned.finished().as_str(), questions(&turned)), ("done", 0), "{tool}");
        let calls = fixture.api.model_calls();
        assert_eq!(calls[0].declared_tools(), ["mcp_host-tools_get_weather"], "{tool}");
        let told = told_to_the_model(&calls[1]);
        assert!(told.contains("error") && !told.contains("the secret"), "{tool}: {told}");
    }
    let turned = client.turn(&calling("mcp_host-tools_get_weather", json!({"city": "Oslo"}))).await;
    assert_eq!((turned.finished().as_str(), questions(&turned)), ("done", 0));
    assert_eq!(weather.calls().len(), 1);
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_chat_a_native_tool_that_the_operator_left_on_is_the_only_one() {
    let fixture = GeminiAgent::chat(&["google_web_search"]).await.start();
    let mut client = fixture.session().await;
    let prompt = script(json!([
        [{"call": {"name": "google_web_search", "id": "c1", "args": {"query": "plums"}}}],
        [{"text": "done"}],
    ]));
    let turned = client.turn(&prompt).await;
    assert_eq!((turned.finished().as_str(), questions(&turned)), ("done", 0));
    assert_eq!(only_tool_of(&turned).call.status, Some(ToolStatus::Completed));
    assert_eq!(fixture.api.model_calls()[0].declared_tools(), ["google_web_search"]);
    fixture.end().await;
}

fn questions(turned: &Turned) -> usize {
    turned.events.iter().filter(|entry| matches!(entry.event, Event::Asked(_))).count()
}
