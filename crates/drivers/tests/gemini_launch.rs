//! The real Gemini CLI, started as its profile says, against a fake of its API: what a model call carries in each execution.

#![expect(clippy::disallowed_methods, reason = "a test starts the real program and has the environment of the tests")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use gembridge_drivers::profile::{
    AgentConfig, ApprovalMode, Environment, Execution, Folders, LaunchInput, Profile, Sandbox, Trust,
};
use gembridge_testkit::gemini_api::{FakeGemini, Recorded};
use gembridge_testkit::raw_acp::{Exchange, RawAcp};
use gembridge_testkit::real_gemini;
use serde_json::{Value, json};

struct Lab {
    folder: tempfile::TempDir,
    api: FakeGemini,
    mcp: McpServer,
}

/// What happened in one turn.
struct Turn {
    exchange: Exchange,
    asked: Vec<Value>,
    calls: Vec<Recorded>,
}

impl Lab {
    async fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), api: FakeGemini::start().await.unwrap(), mcp: McpServer::start() }
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
        let (prompt, server) = (prompt.to_owned(), self.mcp.entry());
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

fn calling(tool: &str, arguments: &Value) -> String {
    let script = json!({"calls": [[{"call": {"name": tool, "id": "c1", "args": arguments}}], [{"text": "done"}]]});
    format!("please SCRIPT:{script}:END")
}

#[tokio::test(flavor = "multi_thread")]
async fn in_chat_a_word_makes_a_small_model_call_that_declares_only_our_tool() {
    let lab = Lab::new().await;
    let turn = lab.turn(Execution::Chat, &[], "ping").await;
    assert_eq!(turn.exchange.response["result"]["stopReason"], "end_turn", "{:?}", turn.exchange.response);
    assert_eq!(turn.calls.len(), 1);
    assert!(turn.calls[0].body_bytes < 1500, "{} bytes: {}", turn.calls[0].body_bytes, turn.calls[0].body);
    assert_eq!(turn.calls[0].declared_tools(), ["mcp_host-tools_get_weather"]);
    assert!(turn.calls[0].path.contains("gemini-3.8-flash"), "the pinned model: {}", turn.calls[0].path);
    assert_eq!(lab.api.requests().len(), 1, "no router call and no other traffic");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_chat_our_tool_runs_unasked_and_a_tool_of_its_own_does_not_run_at_all() {
    let lab = Lab::new().await;
    let turn = lab.turn(Execution::Chat, &[], &calling("mcp_host-tools_get_weather", &json!({"city": "Oslo"}))).await;
    assert!(turn.asked.is_empty(), "{:?}", turn.asked);
    assert_eq!(lab.mcp.calls(), [json!({"city": "Oslo"})]);

    let turn =
        lab.turn(Execution::Chat, &[], &calling("run_shell_command", &json!({"command": "echo x > made"}))).await;
    assert!(turn.asked.is_empty(), "{:?}", turn.asked);
    assert!(!lab.folder.path().join("ws/made").exists());
    let answer = turn.calls[1].body["contents"].to_string();
    assert!(answer.contains("not found in registry"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_chat_native_tools_that_are_named_stay_on_and_run_unasked() {
    let lab = Lab::new().await;
    let prompt = calling("web_fetch", &json!({"prompt": "read https://127.0.0.1:9/x"}));
    let turn = lab.turn(Execution::Chat, &["google_web_search", "web_fetch"], &prompt).await;
    assert!(turn.asked.is_empty(), "{:?}", turn.asked);
    let mut declared = turn.calls[0].declared_tools();
    declared.sort();
    assert_eq!(declared, ["google_web_search", "mcp_host-tools_get_weather", "web_fetch"]);
    assert!(!turn.exchange.updates("tool_call").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn as_an_agent_all_its_tools_are_there_and_it_asks() {
    let lab = Lab::new().await;
    let turn = lab.turn(Execution::Agent, &[], &calling("run_shell_command", &json!({"command": "touch made"}))).await;
    let declared = turn.calls[0].declared_tools();
    for tool in
        ["run_shell_command", "write_file", "replace", "read_file", "google_web_search", "mcp_host-tools_get_weather"]
    {
        assert!(declared.iter().any(|name| name == tool), "{tool} is missing in {declared:?}");
    }
    assert_eq!(turn.asked.len(), 1, "{:?}", turn.asked);
    assert!(!lab.folder.path().join("ws/made").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_outside_our_folders() {
    let lab = Lab::new().await;
    lab.turn(Execution::Chat, &[], "ping").await;
    assert_eq!(fs::read_dir(lab.folder.path().join("home")).unwrap().count(), 0, "the operator's home stays as it was");
    assert_eq!(fs::read_dir(lab.folder.path().join("ws")).unwrap().count(), 0);
    assert!(lab.folder.path().join("state/.gemini/projects.json").exists(), "the private home was used");
}

/// The least MCP server that the CLI accepts: one tool, plain JSON answers, one thread.
struct McpServer {
    url: String,
    calls: Arc<Mutex<Vec<Value>>>,
}

impl McpServer {
    fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let calls = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&calls);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || mcp::serve(&stream, &seen));
            }
        });
        Self { url, calls }
    }

    fn entry(&self) -> Value {
        json!({"type": "http", "name": "host-tools", "url": self.url, "headers": []})
    }

    fn calls(&self) -> Vec<Value> {
        self.calls.lock().unwrap().clone()
    }
}

mod mcp {
    use std::io::{self, BufReader, Write as _};
    use std::net::TcpStream;
    use std::sync::Mutex;

    use serde_json::{Value, json};

    /// Serves one connection until the other side closes it.
    pub fn serve(stream: &TcpStream, calls: &Mutex<Vec<Value>>) {
        let mut reader = BufReader::new(stream);
        while let Ok(Some((method, body))) = read_request(&mut reader) {
            let answer = if method == "POST" { answer_to(&body, calls) } else { None };
            let status = match (&answer, method.as_str()) {
                (Some(_), _) => "200 OK",
                (None, "POST") => "202 Accepted",
                _ => "405 Method Not Allowed",
            };
            let text = answer.map(|answer| answer.to_string()).unwrap_or_default();
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                text.len()
            );
            let mut writer = stream;
            if writer.write_all((head + &text).as_bytes()).is_err() {
                return;
            }
        }
    }

    fn read_request(reader: &mut impl io::BufRead) -> io::Result<Option<(String, Value)>> {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Ok(None);
        }
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let method = first.split(' ').next().unwrap_or_default().to_owned();
        Ok(Some((method, serde_json::from_slice(&body).unwrap_or_default())))
    }

    fn answer_to(request: &Value, calls: &Mutex<Vec<Value>>) -> Option<Value> {
        let id = request.get("id")?;
        let result = match request["method"].as_str()? {
            "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "host-tools", "version": "1"}}),
            "tools/list" => json!({"tools": [{"name": "get_weather", "description": "Weather of a city",
                "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}}}]}),
            "tools/call" => {
                calls.lock().unwrap().push(request["params"]["arguments"].clone());
                json!({"content": [{"type": "text", "text": "sunny"}]})
            }
            _ => json!({}),
        };
        Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }
}
