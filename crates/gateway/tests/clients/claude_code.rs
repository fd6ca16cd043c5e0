//! Claude Code as a whole program, with the gateway in the place of its model: it runs its own tools, and goes on with the
//! conversation in a second run.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use gembridge_testkit::real_claude_code;
use serde_json::{Value, json};

use crate::everyday::gemini;
use crate::support::gateway::Gateway;

/// Tells it something, and reads what it prints at the end.
#[track_caller]
fn tell(gateway: &Gateway, folder: &Path, arguments: &[&str], prompt: &str) -> Value {
    let mut program = Command::new(real_claude_code())
        .args(["-p", "--output-format", "json", "--permission-mode", "acceptEdits", "--allowedTools", "Bash"])
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("HOME", folder)
        .env("ANTHROPIC_BASE_URL", format!("http://{}", gateway.address))
        .env("ANTHROPIC_AUTH_TOKEN", &gateway.key)
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("CLAUDE_CODE_MAX_RETRIES", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    program.stdin.take().unwrap().write_all(prompt.as_bytes()).unwrap();
    let output = program.wait_with_output().unwrap();
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}\n{}", gateway.stderr());
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}\n{complained}"))
}

/// A prompt that makes the model call these tools, one after the other, and then say something.
fn script(calls: &[(&str, Value)], last: &str) -> String {
    let call =
        |(name, args): &(&str, Value)| json!([{ "call": { "name": format!("mcp_host-tools_{name}"), "args": args } }]);
    let rounds: Vec<Value> = calls.iter().map(call).chain([json!([{ "text": last }])]).collect();
    format!("please SCRIPT:{}:END", json!({ "calls": rounds }))
}

#[test]
fn claude_code_does_a_task_with_its_own_tools_and_goes_on_with_it() {
    let (api, gateway) = gemini();
    let folder = gateway.home.path("project");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.txt"), "the river is wide").unwrap();
    let file = |name: &str| folder.join(name).display().to_string();

    // It asks for a model of its own, which the gateway does not have; the default agent answers.
    let prompt = script(
        &[
            ("Read", json!({ "file_path": file("a.txt") })),
            ("Write", json!({ "file_path": file("b.txt"), "content": "the sea is wider" })),
        ],
        "I wrote it down.",
    );
    let first = tell(&gateway, &folder, &[], &prompt);
    assert_eq!((&first["result"], &first["is_error"]), (&json!("I wrote it down."), &json!(false)), "{first}");
    assert_eq!(fs::read_to_string(folder.join("b.txt")).unwrap(), "the sea is wider");
    let heard = api.fake.model_calls().iter().any(|call| call.body.to_string().contains("the river is wide"));
    assert!(heard, "what the tool read reached the model");

    let prompt = script(&[("Bash", json!({ "command": "cat b.txt", "description": "look" }))], "It is still there.");
    let second = tell(&gateway, &folder, &["--continue"], &prompt);
    assert_eq!(second["result"], "It is still there.", "{second}");
    assert_eq!(second["session_id"], first["session_id"]);
    let last = api.fake.model_calls().pop().unwrap().body.to_string();
    assert!(last.contains("the sea is wider") && last.contains("I wrote it down."), "{last}");
    assert!(!last.contains("[Assistant]"), "the conversation was recognised, and not told again: {last}");
}
