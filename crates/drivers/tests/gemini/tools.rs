//! The agent's own tools in agent mode.

use std::fs;

use gembridge_core::model::ToolStatus;
use serde_json::json;

use super::gemini_fixture::{GeminiAgent, allow, script, told_to_the_model, tools_of, turn_answering};

#[tokio::test(flavor = "multi_thread")]
async fn as_an_agent_all_its_tools_are_declared_and_work() {
    let fixture = GeminiAgent::agent().await.start();
    let workspace = fixture.workspace();
    fs::create_dir(workspace.join("src")).unwrap();
    fs::write(workspace.join("src/needle.rs"), "fn hay() {}\nfn needle() {}\n").unwrap();
    let mut client = fixture.session().await;
    let call = |id: &str, name: &str, arguments| json!({"call": {"name": name, "id": id, "args": arguments}});
    let prompt = script(json!([
        [
            call("c1", "list_directory", json!({"dir_path": workspace})),
            call("c2", "glob", json!({"pattern": "**/*.rs"})),
            call("c3", "grep_search", json!({"pattern": "fn needle"})),
            call("c4", "read_file", json!({"file_path": workspace.join("src/needle.rs")})),
            call("c5", "write_file", json!({"file_path": workspace.join("written.txt"), "content": "words"})),
            call("c6", "run_shell_command", json!({"command": "touch made; echo from-the-shell"})),
        ],
        [{"text": "done"}],
    ]));
    let turned = turn_answering(&mut client, &prompt, allow).await;
    assert_eq!(turned.finished(), "done");
    let tools = tools_of(&turned);
    let finished: Vec<_> = tools.iter().map(|tool| (tool.call.name.as_deref(), tool.call.status)).collect();
    let names = ["list_directory", "glob", "grep_search", "read_file", "write_file", "run_shell_command"];
    assert_eq!(finished, names.map(|name| (Some(name), Some(ToolStatus::Completed))));
    assert_eq!(turned.asks.len(), 2, "only what changes something asks: {:?}", turned.asks);
    assert_eq!(fs::read_to_string(workspace.join("written.txt")).unwrap(), "words");
    assert!(workspace.join("made").exists());

    let calls = fixture.api.model_calls();
    let answers = told_to_the_model(&calls[1]);
    for wanted in ["src", "needle.rs", "fn needle()", "fn hay()", "from-the-shell"] {
        assert!(answers.contains(wanted), "`{wanted}` is missing in {answers}");
    }
    let declared = calls[0].declared_tools();
    for tool in names.into_iter().chain(["replace", "web_fetch", "google_web_search", "invoke_agent"]) {
        assert!(declared.iter().any(|name| name == tool), "{tool} is missing in {declared:?}");
    }
    assert!(declared.len() >= 15, "{declared:?}");
    fixture.end().await;
}
