//! Coding programs over the Messages API, each as a whole: it runs its own tools, with the gateway in the place of its model, and goes
//! on with the conversation in a second run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use gembridge_testkit::{real_claude_code, real_opencode, real_qwen};
use serde_json::{Value, json};

use crate::everyday::{Api, gemini};
use crate::support::gateway::Gateway;

/// A prompt that makes the model call these tools, one after the other, and then say something.
fn script(calls: &[(&str, Value)], last: &str) -> String {
    let call =
        |(name, args): &(&str, Value)| json!([{ "call": { "name": format!("mcp_host-tools_{name}"), "args": args } }]);
    let rounds: Vec<Value> = calls.iter().map(call).chain([json!([{ "text": last }])]).collect();
    format!("please SCRIPT:{}:END", json!({ "calls": rounds }))
}

/// Runs a program in a folder that is its home, and hands it the prompt on its standard input.
#[track_caller]
fn tell(mut command: Command, folder: &Path, gateway: &Gateway, prompt: &str) -> String {
    let input = folder.join("prompt.txt");
    fs::write(&input, prompt).unwrap();
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("HOME", folder)
        .env("ANTHROPIC_BASE_URL", format!("http://{}", gateway.address))
        .env("ANTHROPIC_API_KEY", &gateway.key)
        .env("OPENCODE_CONFIG", folder.join("opencode.json"))
        .env("OPENCODE_DISABLE_AUTOUPDATE", "1")
        .stdin(Stdio::from(fs::File::open(&input).unwrap()));
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (said, complained) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}\n{said}\n{complained}\n{}", gateway.stderr());
    format!("{said}\n{complained}")
}

/// A folder to work in, with one file.
fn project(gateway: &Gateway) -> PathBuf {
    let folder = gateway.home.path("project");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.txt"), "the river is wide").unwrap();
    folder
}

/// Whether the model was once told both what the second run found and what was said in the first.
fn heard_both(api: &Api) -> bool {
    let both = ["the sea is wider", "I wrote it down."];
    api.fake.model_calls().iter().any(|call| both.iter().all(|words| call.body.to_string().contains(words)))
}

#[test]
fn claude_code_does_a_task_and_goes_on_with_it_in_one_session() {
    let (api, gateway) = gemini();
    let folder = project(&gateway);
    let file = |name: &str| folder.join(name).display().to_string();
    let claude = |arguments: &[&str]| {
        let mut command = Command::new(real_claude_code());
        command.args(["-p", "--output-format", "json", "--permission-mode", "acceptEdits", "--allowedTools", "Bash"]);
        command.args(arguments);
        command
    };
    // It asks for a model of its own, which the gateway does not have; the default agent answers.
    let prompt = script(
        &[
            ("Read", json!({ "file_path": file("a.txt") })),
            ("Write", json!({ "file_path": file("b.txt"), "content": "the sea is wider" })),
        ],
        "I wrote it down.",
    );
    let said = tell(claude(&[]), &folder, &gateway, &prompt);
    assert!(said.contains(r#""result":"I wrote it down.""#) && said.contains(r#""is_error":false"#), "{said}");
    assert_eq!(fs::read_to_string(folder.join("b.txt")).unwrap(), "the sea is wider");
    let heard = api.fake.model_calls().iter().any(|call| call.body.to_string().contains("the river is wide"));
    assert!(heard, "what the tool read reached the model");

    let prompt = script(&[("Bash", json!({ "command": "cat b.txt", "description": "look" }))], "Still there.");
    let said = tell(claude(&["--continue"]), &folder, &gateway, &prompt);
    assert!(said.contains("Still there.") && heard_both(&api), "{said}");
    let last = api.fake.model_calls().pop().unwrap().body.to_string();
    assert!(!last.contains("[Assistant]"), "the conversation was recognised, and not told again: {last}");
}

#[test]
fn qwen_code_does_a_task_over_the_messages_api_and_goes_on_with_it() {
    let (api, gateway) = gemini();
    let folder = project(&gateway);
    let file = |name: &str| folder.join(name).display().to_string();
    let qwen = |arguments: &[&str]| {
        let mut command = Command::new(real_qwen());
        command.args(["--auth-type", "anthropic", "--model", "gemini", "--yolo"]).args(arguments);
        command
    };
    let prompt = script(
        &[
            ("read_file", json!({ "file_path": file("a.txt") })),
            ("write_file", json!({ "file_path": file("b.txt"), "content": "the sea is wider" })),
        ],
        "I wrote it down.",
    );
    let said = tell(qwen(&[]), &folder, &gateway, &prompt);
    assert!(said.contains("I wrote it down."), "{said}");
    assert_eq!(fs::read_to_string(folder.join("b.txt")).unwrap(), "the sea is wider");
    let prompt =
        script(&[("run_shell_command", json!({ "command": "cat b.txt", "is_background": false }))], "Still there.");
    let said = tell(qwen(&["--continue"]), &folder, &gateway, &prompt);
    assert!(said.contains("Still there.") && heard_both(&api), "{said}");
}

#[test]
fn opencode_does_a_task_over_the_messages_api_and_goes_on_with_it() {
    let (api, gateway) = gemini();
    let folder = project(&gateway);
    let options = json!({ "baseURL": format!("http://{}/v1", gateway.address), "apiKey": gateway.key });
    let provider =
        json!({ "npm": "@ai-sdk/anthropic", "name": "g", "options": options, "models": { "gemini": { "name": "g" } } });
    let config =
        json!({ "provider": { "g": provider }, "model": "g/gemini", "small_model": "g/gemini", "permission": "allow" });
    fs::write(folder.join("opencode.json"), config.to_string()).unwrap();
    let file = |name: &str| folder.join(name).display().to_string();
    let opencode = |arguments: &[&str]| {
        let mut command = Command::new(real_opencode());
        command.arg("run").args(arguments);
        command
    };
    let prompt = script(
        &[
            ("read", json!({ "filePath": file("a.txt") })),
            ("write", json!({ "filePath": file("b.txt"), "content": "the sea is wider" })),
        ],
        "I wrote it down.",
    );
    let said = tell(opencode(&[]), &folder, &gateway, &prompt);
    assert!(said.contains("I wrote it down."), "{said}");
    assert_eq!(fs::read_to_string(folder.join("b.txt")).unwrap(), "the sea is wider");
    let prompt = script(&[("bash", json!({ "command": "cat b.txt", "description": "look" }))], "Still there.");
    let said = tell(opencode(&["--continue"]), &folder, &gateway, &prompt);
    assert!(said.contains("Still there.") && heard_both(&api), "{said}");
}
