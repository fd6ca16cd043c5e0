//! The real Gemini CLI, started as its profile says, against a fake of its API: what a model call carries in each execution.

#![expect(clippy::disallowed_methods, reason = "a test starts the real program and has the environment of the tests")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use gembridge_core::driver::ToolServer;
use gembridge_drivers::profile::{
    AgentConfig, ApprovalMode, Environment, Execution, Folders, HomeOwner, LaunchInput, Profile, Sandbox, Trust,
};
use gembridge_testkit::gemini_api::{FakeGemini, Recorded};
use gembridge_testkit::raw_acp::{Exchange, RawAcp};
use gembridge_testkit::real_gemini;
use serde_json::{Value, json};

use tool_server::HostTools;

#[path = "gemini/tool_server.rs"]
#[expect(dead_code, reason = "shared with tests that look at more of it")]
mod tool_server;

struct Fixture {
    folder: tempfile::TempDir,
    api: FakeGemini,
    tools: HostTools,
}

/// What happened in one turn.
struct Turn {
    exchange: Exchange,
    asked: Vec<Value>,
    calls: Vec<Recorded>,
}

impl Fixture {
    async fn new() -> Self {
        let (folder, api) = (tempfile::tempdir().unwrap(), FakeGemini::start().await.unwrap());
        Self { folder, api, tools: HostTools::start("get_weather", "sunny") }
    }

    fn command(&self, execution: Execution, native_tools: &[&str]) -> Command {
        let native_tools = native_tools.iter().map(|tool| (*tool).to_owned()).collect();
        let config = AgentConfig { native_tools, ..AgentConfig::default() };
        let profile = Profile::custom("gemini", &config, &Profile::builtin().unwrap()).unwrap();
        let [state, private, cache, workspace] =
            ["state", "private", "cache", "ws"].map(|name| self.folder.path().join(name));
        let home = self.folder.path().join("home");
        let environment = Environment::from([
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("HOME".to_owned(), home.to_str().unwrap().to_owned()),
            ("GEMINI_API_KEY".to_owned(), "fake-key".to_owned()),
            ("GOOGLE_GEMINI_BASE_URL".to_owned(), self.api.url()),
        ]);
        let login = profile.find_login(&environment, &|path| path.exists());
        let launch = profile
            .launch(&LaunchInput {
                program: &real_gemini(),
                version: None,
                execution,
                workspace: &workspace,
                trust: Trust::Trusted,
                home: HomeOwner::Operator,
                folders: Folders { state: &state, private: &private, cache: &cache },
                environment: &environment,
                login: login.as_ref(),
                model: None,
                approval: ApprovalMode::Default,
                sandbox: Sandbox::Off,
            })
            .unwrap();
        for folder in launch.folders.iter().chain([&state, &private, &cache, &workspace, &home]) {
            fs::create_dir_all(folder).unwrap();
        }
        for file in &launch.files {
            let mut options = fs::OpenOptions::new();
            let mut written = options.write(true).create(true).truncate(true).mode(0o600).open(&file.path).unwrap();
            written.write_all(&file.bytes).unwrap();
        }
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).env_clear().envs(&launch.environment).current_dir(&launch.cwd).stderr(Stdio::null());
        command
    }

    /// One turn in a new process; every permission is refused.
    async fn turn(&self, execution: Execution, native_tools: &[&str], prompt: &str) -> Turn {
        self.api.forget_requests();
        let mut command = self.command(execution, native_tools);
        let cwd = command.get_current_dir().unwrap().to_owned();
        let (prompt, server) = (prompt.to_owned(), entry_of(&self.tools.server()));
        let (exchange, asked) = tokio::task::spawn_blocking(move || {
            let mut cli = RawAcp::start(&mut command).unwrap();
            cli.initialize();
            let session = open_session(&mut cli, &cwd, &server);
            let id = cli.start_prompt(&session, &prompt);
            let mut asked = Vec::new();
            let exchange = cli.finish(id, |message| {
                asked.push(message.clone());
                json!({"outcome": {"outcome": "cancelled"}})
            });
            (exchange, asked)
        })
        .await
        .unwrap();
        Turn { exchange, asked, calls: self.api.model_calls() }
    }
}

fn open_session(cli: &mut RawAcp, cwd: &Path, server: &Value) -> String {
    let response = cli.call("session/new", &json!({"cwd": cwd, "mcpServers": [server]})).response;
    response["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {response}")).to_owned()
}

/// A tool server as `session/new` names it.
fn entry_of(server: &ToolServer) -> Value {
    let headers: Vec<Value> =
        server.headers.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    json!({"type": "http", "name": server.name, "url": server.url, "headers": headers})
}

fn calling(tool: &str, arguments: &Value) -> String {
    let script = json!({"calls": [[{"call": {"name": tool, "id": "c1", "args": arguments}}], [{"text": "done"}]]});
    format!("please SCRIPT:{script}:END")
}

#[tokio::test(flavor = "multi_thread")]
async fn in_chat_a_word_makes_a_small_model_call_that_declares_only_our_tool() {
    let fixture = Fixture::new().await;
    let turn = fixture.turn(Execution::Chat, &[], "ping").await;
    assert_eq!(turn.exchange.response["result"]["stopReason"], "end_turn", "{:?}", turn.exchange.response);
    assert_eq!(turn.calls.len(), 1);
    assert!(turn.calls[0].body_bytes < 1500, "{} bytes: {}", turn.calls[0].body_bytes, turn.calls[0].body);
    assert_eq!(turn.calls[0].declared_tools(), ["mcp_host-tools_get_weather"]);
    assert!(turn.calls[0].path.contains("gemini-3.8-flash"), "the pinned model: {}", turn.calls[0].path);
    assert_eq!(fixture.api.requests().len(), 1, "no router call and no other traffic");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_chat_our_tool_runs_unasked_and_a_tool_of_its_own_does_not_run_at_all() {
    let fixture = Fixture::new().await;
    let turn =
        fixture.turn(Execution::Chat, &[], &calling("mcp_host-tools_get_weather", &json!({"city": "Oslo"}))).await;
    assert!(turn.asked.is_empty(), "{:?}", turn.asked);
    assert_eq!(fixture.tools.calls(), [json!({"name": "get_weather", "arguments": {"city": "Oslo"}})]);

    let turn =
        fixture.turn(Execution::Chat, &[], &calling("run_shell_command", &json!({"command": "echo x > made"}))).await;
    assert!(turn.asked.is_empty(), "{:?}", turn.asked);
    assert!(!fixture.folder.path().join("ws/made").exists());
    let answer = turn.calls[1].body["contents"].to_string();
    assert!(answer.contains("not found in registry"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_chat_native_tools_that_are_named_stay_on_and_run_unasked() {
    let fixture = Fixture::new().await;
    let prompt = calling("web_fetch", &json!({"prompt": "read https://127.0.0.1:9/x"}));
    let turn = fixture.turn(Execution::Chat, &["google_web_search", "web_fetch"], &prompt).await;
    assert!(turn.asked.is_empty(), "{:?}", turn.asked);
    let mut declared = turn.calls[0].declared_tools();
    declared.sort();
    assert_eq!(declared, ["google_web_search", "mcp_host-tools_get_weather", "web_fetch"]);
    assert!(!turn.exchange.updates("tool_call").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn as_an_agent_all_its_tools_are_there_and_it_asks() {
    let fixture = Fixture::new().await;
    let turn =
        fixture.turn(Execution::Agent, &[], &calling("run_shell_command", &json!({"command": "touch made"}))).await;
    let declared = turn.calls[0].declared_tools();
    for tool in
        ["run_shell_command", "write_file", "replace", "read_file", "google_web_search", "mcp_host-tools_get_weather"]
    {
        assert!(declared.iter().any(|name| name == tool), "{tool} is missing in {declared:?}");
    }
    assert_eq!(turn.asked.len(), 1, "{:?}", turn.asked);
    assert!(!fixture.folder.path().join("ws/made").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_outside_our_folders() {
    let fixture = Fixture::new().await;
    fixture.turn(Execution::Chat, &[], "ping").await;
    assert_eq!(
        fs::read_dir(fixture.folder.path().join("home")).unwrap().count(),
        0,
        "the operator's home stays as it was"
    );
    assert_eq!(fs::read_dir(fixture.folder.path().join("ws")).unwrap().count(), 0);
    assert!(fixture.folder.path().join("state/.gemini/projects.json").exists(), "the private home was used");
}
