//! The real Gemini CLI against the fake API over bare stdio: proves the fake, and that the CLI needs no network.

use std::{fs, path::Path, process::Stdio};

use gembridge_testkit::{
    gemini_api::FakeGemini,
    gemini_command,
    raw_acp::{Exchange, RawAcp},
};
use serde_json::{Value, json};

struct Fixture {
    folder: tempfile::TempDir,
    api: FakeGemini,
}

impl Fixture {
    async fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), api: FakeGemini::start().await.unwrap() }
    }

    /// Opens a session and lets a test talk in a thread where it may block.
    async fn talk<T: Send + 'static>(&self, talk: impl FnOnce(&mut RawAcp, &str, &Path) -> T + Send + 'static) -> T {
        let (home, workspace) = (self.folder.path().join("home"), self.folder.path().join("workspace"));
        fs::create_dir_all(&workspace).unwrap();
        let mut command = gemini_command(&home, &self.api.url()).unwrap();
        command.current_dir(&workspace).args(["-m", "gemini-2.5-flash"]).stderr(Stdio::null());
        tokio::task::spawn_blocking(move || {
            let mut cli = RawAcp::start(&mut command).unwrap();
            let initialized = cli.initialize();
            assert_eq!(initialized["result"]["agentInfo"]["version"], "0.61.0");
            let session = cli.open_session(workspace.to_str().unwrap());
            talk(&mut cli, &session, &workspace)
        })
        .await
        .unwrap()
    }
}

fn script(calls: &Value) -> String {
    format!("please SCRIPT:{}:END", json!({"calls": calls}))
}

fn stop_reason(exchange: &Exchange) -> &str {
    exchange.response["result"]["stopReason"].as_str().unwrap_or("none")
}

#[tokio::test(flavor = "multi_thread")]
async fn thoughts_a_tool_with_permission_and_text_pass_through_the_real_cli() {
    let fixture = Fixture::new().await;
    let shell = json!({"name": "run_shell_command", "id": "fc1",
        "args": {"command": "touch made; echo done", "description": "makes a file"}});
    let prompt = script(&json!([
        [{"thought": "**Planning** one file"}, {"text": "Running."}, {"call": shell}],
        [{"text": "All"}, {"text": " done"}],
    ]));
    let (plain, scripted, made) = fixture
        .talk(move |cli, session, workspace| {
            let plain = cli.prompt(session, "ping");
            let id = cli.start_prompt(session, &prompt);
            let scripted = cli.finish(id, |_| json!({"outcome": {"outcome": "selected", "optionId": "proceed_once"}}));
            (plain, scripted, workspace.join("made").exists())
        })
        .await;

    assert_eq!((plain.text().as_str(), stop_reason(&plain)), ("You said: ping", "end_turn"));
    assert_eq!((scripted.text().as_str(), stop_reason(&scripted)), ("Running.All done", "end_turn"));
    assert_eq!(scripted.updates("agent_thought_chunk")[0]["content"]["text"], "**Planning**\none file");
    let permissions = scripted.requests("session/request_permission");
    assert_eq!(permissions.len(), 1);
    assert_eq!(permissions[0]["params"]["toolCall"]["toolCallId"], "run_shell_command__fc1");
    assert_eq!(scripted.updates("tool_call_update")[0]["status"], "completed");
    assert!(made, "the tool did not run");
    let usage = &scripted.response["result"]["_meta"]["quota"]["token_count"];
    assert_eq!(*usage, json!({"input_tokens": 2000, "output_tokens": 40}));

    let calls = fixture.api.model_calls();
    assert_eq!(calls.len(), 3, "one for `ping`, two for the script");
    assert_eq!(calls[0].path, "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
    assert_eq!(calls[0].header("x-goog-api-key"), Some("fake-key"));
    assert!(calls[0].declared_tools().contains(&"run_shell_command".to_owned()));
    assert!(calls[0].body_bytes > 10_000, "the usual system prompt is long");
    assert!(calls[2].body.to_string().contains("functionResponse"));
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_of_the_api_reach_the_client() {
    let fixture = Fixture::new().await;
    let (refused, cut, cancelled) = fixture
        .talk(|cli, session, _| {
            let refused = cli.prompt(session, &script(&json!([[{"status": 429}]])));
            let cut = cli.prompt(session, &script(&json!([[{"text": "partial"}, {"cut": true}]])));
            let id =
                cli.start_prompt(session, &script(&json!([[{"text": "first"}, {"delay_ms": 1}, {"stall": true}]])));
            while cli.message().unwrap()["params"]["update"]["content"]["text"] != "first" {}
            cli.notify("session/cancel", &json!({"sessionId": session}));
            let cancelled = cli.finish(id, |message| panic!("the agent asked {message}"));
            (refused, cut, cancelled)
        })
        .await;
    assert_eq!(refused.response["error"]["code"], 429);
    assert_eq!(cut.text(), "partial");
    assert!(cut.response.get("error").is_some(), "{}", cut.response);
    assert_eq!(stop_reason(&cancelled), "cancelled");
}
