//! Coding programs, each as a whole: it runs two of its own tools, with the gateway in the place of its model, and goes on with
//! the conversation in a second run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use gembridge_testkit::{real_claude_code, real_codex_cli, real_opencode, real_qwen};
use serde_json::{Value, json};

use crate::everyday::gemini;
use crate::support::gateway::Gateway;
use crate::support::script::{Script, repository};

/// A program, and the names that it has for its tools.
struct Program {
    /// What starts it, with these arguments more.
    command: fn(&[&str]) -> Command,
    /// What makes it go on with its last conversation.
    go_on: &'static [&'static str],
    reads: (&'static str, Value),
    writes: (&'static str, Value),
    runs: (&'static str, Value),
    /// Whether its second run is recognised as the same conversation, so that the model is not told it again.
    is_recognised: bool,
}

const WRITTEN: &str = "the sea is wider";

/// A prompt that makes the model call these tools, one after the other, and then say something.
fn script(calls: &[&(&str, Value)], last: &str) -> String {
    let call =
        |(name, args): &&(&str, Value)| json!([{ "call": { "name": format!("mcp_host-tools_{name}"), "args": args } }]);
    let rounds: Vec<Value> = calls.iter().map(call).chain([json!([{ "text": last }])]).collect();
    format!("please SCRIPT:{}:END", json!({ "calls": rounds }))
}

/// Runs a program in a folder that is its home, and hands it the prompt on its standard input.
#[track_caller]
fn tell(mut command: Command, folder: &Path, gateway: &Gateway, prompt: &str) -> String {
    let input = folder.join("prompt.txt");
    fs::write(&input, prompt).unwrap();
    let (url, v1) = (format!("http://{}", gateway.address), format!("http://{}/v1", gateway.address));
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("HOME", folder)
        .env("ANTHROPIC_BASE_URL", url)
        .env("ANTHROPIC_API_KEY", &gateway.key)
        .env("GEMBRIDGE_KEY", &gateway.key)
        .env("CODEX_HOME", folder.join(".codex"))
        .env("OPENCODE_CONFIG", folder.join("opencode.json"))
        .env("OPENCODE_DISABLE_AUTOUPDATE", "1")
        .env("COPILOT_PROVIDER_BASE_URL", v1)
        .env("COPILOT_PROVIDER_TYPE", "openai")
        .env("COPILOT_PROVIDER_WIRE_API", "responses")
        .env("COPILOT_PROVIDER_API_KEY", &gateway.key)
        .env("COPILOT_MODEL", "gemini")
        .env("COPILOT_OFFLINE", "true")
        .env("CONTINUE_TELEMETRY_ENABLED", "0")
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

fn file(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// Gives a program its task, and then another in the same conversation. The path over which it asks is seen in the log.
#[track_caller]
fn does_a_task(prepare: impl FnOnce(&Gateway, &Path), program: impl Fn(&Path) -> Program, path: &str) {
    let (api, gateway) = gemini();
    let folder = project(&gateway);
    prepare(&gateway, &folder);
    let program = program(&folder);
    let prompt = script(&[&program.reads, &program.writes], "I wrote it down.");
    let said = tell((program.command)(&[]), &folder, &gateway, &prompt);
    assert!(said.contains("I wrote it down."), "{said}");
    assert_eq!(fs::read_to_string(folder.join("b.txt")).unwrap().trim(), WRITTEN);
    let heard = api.fake.model_calls().iter().any(|call| call.body.to_string().contains("the river is wide"));
    assert!(heard, "what the tool read reached the model");

    let said = tell((program.command)(program.go_on), &folder, &gateway, &script(&[&program.runs], "Still there."));
    assert!(said.contains("Still there."), "{said}");
    let calls = api.fake.model_calls();
    let heard = |call: &str| [WRITTEN, "I wrote it down."].iter().all(|words| call.contains(words));
    assert!(calls.iter().any(|call| heard(&call.body.to_string())), "the model heard of both runs");
    if program.is_recognised {
        let last = calls.last().unwrap().body.to_string();
        assert!(!last.contains("[Assistant]"), "the conversation was recognised, and not told again: {last}");
    }
    assert!(gateway.stderr().contains(&format!("path={path}")), "{}", gateway.stderr());
}

#[test]
fn claude_code_does_a_task_and_goes_on_with_it_in_one_session() {
    // It asks for a model of its own, which the gateway does not have; the default agent answers.
    let command = |arguments: &[&str]| {
        let mut command = Command::new(real_claude_code());
        command.args(["-p", "--output-format", "json", "--permission-mode", "acceptEdits", "--allowedTools", "Bash"]);
        command.args(arguments);
        command
    };
    let program = |folder: &Path| Program {
        command,
        go_on: &["--continue"],
        reads: ("Read", json!({ "file_path": file(folder, "a.txt") })),
        writes: ("Write", json!({ "file_path": file(folder, "b.txt"), "content": WRITTEN })),
        runs: ("Bash", json!({ "command": "cat b.txt", "description": "look" })),
        is_recognised: true,
    };
    does_a_task(|_, _| {}, program, "/v1/messages");
}

#[test]
fn qwen_code_does_a_task_over_the_messages_api_and_goes_on_with_it() {
    let command = |arguments: &[&str]| {
        let mut command = Command::new(real_qwen());
        command.args(["--auth-type", "anthropic", "--model", "gemini", "--yolo"]).args(arguments);
        command
    };
    let program = |folder: &Path| Program {
        command,
        go_on: &["--continue"],
        reads: ("read_file", json!({ "file_path": file(folder, "a.txt") })),
        writes: ("write_file", json!({ "file_path": file(folder, "b.txt"), "content": WRITTEN })),
        runs: ("run_shell_command", json!({ "command": "cat b.txt", "is_background": false })),
        is_recognised: false,
    };
    does_a_task(|_, _| {}, program, "/v1/messages");
}

/// OpenCode with a provider of the AI SDK.
fn opencode(package: &'static str, path: &str) {
    let prepare = |gateway: &Gateway, folder: &Path| {
        let options = json!({ "baseURL": format!("http://{}/v1", gateway.address), "apiKey": gateway.key });
        let provider =
            json!({ "npm": package, "name": "g", "options": options, "models": { "gemini": { "name": "g" } } });
        let model = "g/gemini";
        let config =
            json!({ "provider": { "g": provider }, "model": model, "small_model": model, "permission": "allow" });
        fs::write(folder.join("opencode.json"), config.to_string()).unwrap();
    };
    let command = |arguments: &[&str]| {
        let mut command = Command::new(real_opencode());
        command.arg("run").args(arguments);
        command
    };
    let program = |folder: &Path| Program {
        command,
        go_on: &["--continue"],
        reads: ("read", json!({ "filePath": file(folder, "a.txt") })),
        writes: ("write", json!({ "filePath": file(folder, "b.txt"), "content": WRITTEN })),
        runs: ("bash", json!({ "command": "cat b.txt", "description": "look" })),
        is_recognised: false,
    };
    does_a_task(prepare, program, path);
}

#[test]
fn opencode_does_a_task_over_the_messages_api_and_goes_on_with_it() {
    opencode("@ai-sdk/anthropic", "/v1/messages");
}

#[test]
fn opencode_does_a_task_over_the_responses_api_and_goes_on_with_it() {
    opencode("@ai-sdk/openai", "/v1/responses");
}

#[test]
fn opencode_does_a_task_over_chat_completions_and_goes_on_with_it() {
    opencode("@ai-sdk/openai-compatible", "/v1/chat/completions");
}

/// A program among the clients of Node.js.
fn installed(place: &str) -> PathBuf {
    repository().join("tests/clients/node/node_modules").join(place)
}

#[test]
fn copilot_cli_does_a_task_over_the_responses_api_and_goes_on_with_it() {
    let command = |arguments: &[&str]| {
        let mut command = Command::new(Script::node_program());
        command.arg(installed("@github/copilot/npm-loader.js")).args(["--allow-all", "--no-color"]).args(arguments);
        command
    };
    let program = |folder: &Path| Program {
        command,
        go_on: &["--continue"],
        reads: ("view", json!({ "path": file(folder, "a.txt") })),
        writes: ("create", json!({ "path": file(folder, "b.txt"), "file_text": WRITTEN })),
        runs: ("bash", json!({ "command": "cat b.txt", "description": "look" })),
        is_recognised: false,
    };
    does_a_task(|_, _| {}, program, "/v1/responses");
}

#[test]
fn continue_does_a_task_over_the_messages_api_and_goes_on_with_it() {
    let prepare = |gateway: &Gateway, folder: &Path| {
        let config = format!(
            "name: g\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: g\n    provider: anthropic\n    model: gemini\n    apiBase: http://{}/v1\n    apiKey: {}\n    roles: [chat]\n    capabilities: [tool_use]\n",
            gateway.address, gateway.key
        );
        fs::write(folder.join("continue.yaml"), config).unwrap();
    };
    let command = |arguments: &[&str]| {
        let mut command = Command::new(Script::node_program());
        command.arg(installed("@continuedev/cli/dist/cn.js"));
        command.args(["-p", "--auto", "--config", "continue.yaml"]).args(arguments);
        command
    };
    let program = |folder: &Path| Program {
        command,
        go_on: &["--resume"],
        reads: ("Read", json!({ "filepath": file(folder, "a.txt") })),
        writes: ("Write", json!({ "filepath": file(folder, "b.txt"), "content": WRITTEN })),
        runs: ("Bash", json!({ "command": "cat b.txt" })),
        is_recognised: false,
    };
    does_a_task(prepare, program, "/v1/messages");
}

#[test]
fn codex_does_a_task_over_a_websocket_and_goes_on_with_it() {
    let prepare = |gateway: &Gateway, folder: &Path| {
        let settings = format!(
            "model = 'gpt-5.5'\nmodel_provider = 'gembridge'\n[model_providers.gembridge]\nname = 'gembridge'\n\
             base_url = 'http://{}/v1'\nwire_api = 'responses'\nenv_key = 'GEMBRIDGE_KEY'\nrequest_max_retries = 0\n\
             stream_max_retries = 0\nsupports_websockets = true\n",
            gateway.address
        );
        fs::create_dir_all(folder.join(".codex")).unwrap();
        fs::write(folder.join(".codex/config.toml"), settings).unwrap();
    };
    let command = |arguments: &[&str]| {
        let mut command = Command::new(real_codex_cli());
        command.args(["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]);
        command.args(arguments).arg("-");
        command
    };
    // `exec_command` is a function, `apply_patch` a custom tool whose input is no JSON.
    let patch = format!("*** Begin Patch\n*** Add File: b.txt\n+{WRITTEN}\n*** End Patch\n");
    let program = |_: &Path| Program {
        command,
        go_on: &["resume", "--last"],
        reads: ("exec_command", json!({ "cmd": "cat a.txt" })),
        writes: ("apply_patch", json!({ "input": patch.clone() })),
        runs: ("exec_command", json!({ "cmd": "cat b.txt" })),
        is_recognised: false,
    };
    does_a_task(prepare, program, "/v1/responses");
}
