//! Codex CLI as a whole program, with the gateway in the place of its model: it runs its own tools, functions and custom
//! ones, and goes on with the conversation in a second run.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use gembridge_testkit::real_codex_cli;
use serde_json::{Value, json};

use crate::everyday::gemini;
use crate::support::gateway::Gateway;

/// Tells it something, and reads the events that it prints.
#[track_caller]
fn tell(gateway: &Gateway, folder: &Path, arguments: &[&str], prompt: &str) -> Vec<Value> {
    let settings = format!(
        "model = 'gpt-5.5'\nmodel_provider = 'gembridge'\n[model_providers.gembridge]\nname = 'gembridge'\n\
         base_url = 'http://{}/v1'\nwire_api = 'responses'\nenv_key = 'GEMBRIDGE_KEY'\nrequest_max_retries = 0\n\
         stream_max_retries = 0\n",
        gateway.address
    );
    let home = gateway.home.path("codex-home");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("config.toml"), settings).unwrap();
    let mut program = Command::new(real_codex_cli())
        .args(["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"])
        .args(arguments)
        .arg("-")
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("HOME", gateway.home.path(""))
        .env("CODEX_HOME", &home)
        .env("GEMBRIDGE_KEY", &gateway.key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    program.stdin.take().unwrap().write_all(prompt.as_bytes()).unwrap();
    let output = program.wait_with_output().unwrap();
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}\n{}", gateway.stderr());
    said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// The last thing that the agent said.
fn last_words(events: &[Value]) -> &str {
    let mut messages = events.iter().rev().filter(|event| event["item"]["type"] == "agent_message");
    messages.next().and_then(|event| event["item"]["text"].as_str()).unwrap_or_else(|| panic!("{events:#?}"))
}

/// A prompt that makes the model call these tools, one after the other, and then say something.
fn script(calls: &[(&str, Value)], last: &str) -> String {
    let call =
        |(name, args): &(&str, Value)| json!([{ "call": { "name": format!("mcp_host-tools_{name}"), "args": args } }]);
    let rounds: Vec<Value> = calls.iter().map(call).chain([json!([{ "text": last }])]).collect();
    format!("please SCRIPT:{}:END", json!({ "calls": rounds }))
}

#[test]
fn codex_does_a_task_with_its_own_tools_and_goes_on_with_it() {
    let (api, gateway) = gemini();
    let folder = gateway.home.path("project");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.txt"), "the river is wide").unwrap();

    // `exec_command` is a function, `apply_patch` a custom tool whose input is no JSON.
    let patch = "*** Begin Patch\n*** Add File: b.txt\n+the sea is wider\n*** End Patch\n";
    let calls = [("exec_command", json!({ "cmd": "cat a.txt" })), ("apply_patch", json!({ "input": patch }))];
    let first = tell(&gateway, &folder, &[], &script(&calls, "I wrote it down."));
    assert_eq!(last_words(&first), "I wrote it down.");
    assert_eq!(fs::read_to_string(folder.join("b.txt")).unwrap().trim(), "the sea is wider");
    let heard = api.fake.model_calls().iter().any(|call| call.body.to_string().contains("the river is wide"));
    assert!(heard, "what the tool read reached the model");

    let calls = [("exec_command", json!({ "cmd": "cat b.txt" }))];
    let second = tell(&gateway, &folder, &["resume", "--last"], &script(&calls, "It is still there."));
    assert_eq!(last_words(&second), "It is still there.");
    let last = api.fake.model_calls().pop().unwrap().body.to_string();
    assert!(last.contains("the sea is wider") && last.contains("I wrote it down."), "{last}");
    assert!(!last.contains("[Assistant]"), "the conversation was recognised, and not told again: {last}");
}
