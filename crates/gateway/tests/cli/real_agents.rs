//! The real Gemini CLI and Claude Code, headless and over ACP, on fakes of their APIs; then what they wrote is read back, and
//! tells the same as the live turn did.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use gembridge_testkit::gemini_api::FakeGemini;
use gembridge_testkit::model_api::FakeModel;
use gembridge_testkit::{real_claude_code, real_gemini};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::home::Home;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn path() -> String {
    std::env::var("PATH").unwrap()
}

/// A prompt whose model thinks, reads a file and then says something.
fn reading(tool: &str, file: &str) -> String {
    let call = json!({"call": {"name": tool, "args": {"file_path": file}}});
    format!("please SCRIPT:{}:END", json!({"calls": [[{"text": "Looking."}, call], [{"text": "All done"}]]}))
}

struct Machine {
    home: Home,
    workspace: PathBuf,
    variables: Vec<(&'static str, String)>,
}

impl Machine {
    fn new(settings: &str, variables: Vec<(&'static str, String)>) -> Self {
        let home = Home::new();
        home.configure(settings);
        let workspace = home.path("workspace");
        fs::create_dir(&workspace).unwrap();
        let workspace = workspace.canonicalize().unwrap();
        fs::write(workspace.join("note.txt"), "a line of the note").unwrap();
        home.run(&["trust", "add", workspace.to_str().unwrap()]).succeeds();
        Self { home, workspace, variables }
    }

    fn gemini(api: &FakeGemini) -> Self {
        let settings = format!("[agents.gemini]\ncommand = '{}'\n", real_gemini().display());
        let variables =
            vec![("PATH", path()), ("GEMINI_API_KEY", "fake-key".to_owned()), ("GOOGLE_GEMINI_BASE_URL", api.url())];
        Self::new(&settings, variables)
    }

    fn run(&self, args: &[&str]) -> Value {
        self.ran(args, &[]).json()
    }

    fn ran(&self, args: &[&str], more: &[(&str, &str)]) -> crate::support::run::Ran {
        let variables = self.variables.iter().map(|(name, value)| (*name, value.as_str()));
        let variables: Vec<_> = variables.chain(more.iter().copied()).collect();
        self.home.run_with(args, &variables).succeeds()
    }

    fn turn(&self, agent: &str, driver: &str, more: &[&str], prompt: &str) -> Value {
        let cwd = self.workspace.to_str().unwrap();
        let args = ["run", "--agent", agent, "--driver", driver, "--cwd", cwd, "--output-format", "json"];
        self.run(&args.iter().chain(more).chain([&prompt]).copied().collect::<Vec<_>>())
    }
}

/// Names of tools, and all text, of messages.
fn told(messages: &Value) -> (Vec<String>, String) {
    let (mut tools, mut text) = (Vec::new(), String::new());
    for message in messages.as_array().unwrap().iter().filter(|message| message["role"] == "assistant") {
        match &message["content"] {
            Value::String(said) => text.push_str(said),
            blocks => {
                for block in blocks.as_array().unwrap() {
                    match block["type"].as_str().unwrap() {
                        "text" => text.push_str(block["text"].as_str().unwrap()),
                        "tool_use" => tools.push(block["name"].as_str().unwrap().to_owned()),
                        _ => {}
                    }
                }
            }
        }
    }
    (tools, text)
}

#[test]
fn what_gemini_cli_wrote_headless_and_over_acp_reads_as_the_live_turn() {
    let runtime = runtime();
    let api = runtime.block_on(FakeGemini::start()).unwrap();
    let machine = Machine::gemini(&api);
    let home = machine.home.state("agents/gemini");
    let home = [("GEMINI_CLI_HOME", home.to_str().unwrap())];
    for driver in ["headless", "acp"] {
        let live = machine.turn("gemini", driver, &["--model", "gemini-2.5-flash"], &reading("read_file", "note.txt"));
        assert_eq!((&live["subtype"], &live["result"]), (&"success".into(), &"All done".into()), "{live:#}");
        let list = machine.ran(&["sessions", "list", "--all", "--agent", "gemini", "--json"], &home).json();
        let written = &list[0];
        assert_eq!(written["project"], machine.workspace.to_str().unwrap(), "{driver}: {list:#}");
        let exported = machine
            .ran(&["sessions", "export", written["id"].as_str().unwrap(), "--json", "--no-originals"], &home)
            .json();
        let (tools, text) = told(&exported["messages"]);
        assert_eq!((tools, text.as_str()), (vec!["Read".to_owned()], "Looking.All done"), "{driver}: {exported:#}");
        let (live_tools, live_text) = told(&live["messages"]);
        assert_eq!((live_tools.len(), live_text.as_str()), (1, "Looking.All done"), "{driver}: {live:#}");
        for field in ["input_tokens", "output_tokens"] {
            assert_eq!(exported["usage"][field], live["usage"][field], "{driver} {field}: {live:#} {exported:#}");
        }
    }
    assert!(fs::read_dir(&machine.workspace).unwrap().count() == 1, "nothing was left in the workspace");
}

#[test]
fn gemini_cli_goes_on_headless_with_what_it_said_before() {
    let runtime = runtime();
    let api = runtime.block_on(FakeGemini::start()).unwrap();
    let machine = Machine::gemini(&api);
    let first = machine.turn("gemini", "headless", &[], "the word is quince");
    let session = first["session_id"].as_str().unwrap();
    let second = machine.turn("gemini", "headless", &["--resume", session], "what was it?");
    assert_eq!(second["result"], "You said: what was it?", "{second:#}");
    let asked = api.model_calls();
    let last = asked.last().unwrap().body["contents"].to_string();
    assert!(last.contains("the word is quince") && !last.contains("[User]"), "it was resumed, not told: {last}");
}

#[test]
fn gemini_cli_that_wrote_a_session_without_us_loads_it_again() {
    let runtime = runtime();
    let api = runtime.block_on(FakeGemini::start()).unwrap();
    let machine = Machine::gemini(&api);
    let settings = json!({"security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"sessionRetention": {"enabled": false}}});
    let file = machine.home.path(".gemini/settings.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, settings.to_string()).unwrap();
    let mut alone = Command::new(real_gemini());
    alone.args(["--output-format=json", "--model=gemini-2.5-flash"]).env_clear().current_dir(&machine.workspace);
    alone.env("HOME", machine.home.folder()).env("GEMINI_CLI_TRUST_WORKSPACE", "true");
    alone.envs(machine.variables.iter().map(|(name, value)| (*name, value)));
    let mut alone = alone.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    alone.stdin.take().unwrap().write_all(b"the word is quince").unwrap();
    let written: Value = serde_json::from_slice(&alone.wait_with_output().unwrap().stdout).unwrap();
    let id = written["session_id"].as_str().unwrap();
    let resumed = machine.run(&["sessions", "resume", id, "what was it?", "--json"]);
    assert_eq!(resumed["result"], "You said: what was it?", "{resumed:#}");
    let last = api.model_calls().last().unwrap().body["contents"].to_string();
    assert!(last.contains("the word is quince") && !last.contains("[User]"), "it was loaded, not told: {last}");
}

#[test]
fn what_claude_code_wrote_headless_reads_as_the_live_turn() {
    let runtime = runtime();
    let model = runtime.block_on(FakeModel::start()).unwrap();
    let settings = format!("[agents.claude]\ncommand = '{}'\ndriver = 'headless'\n", real_claude_code().display());
    let variables =
        vec![("PATH", path()), ("ANTHROPIC_API_KEY", "fake-key".to_owned()), ("ANTHROPIC_BASE_URL", model.url())];
    let machine = Machine::new(&settings, variables);
    let file = machine.workspace.join("note.txt");
    let live = machine.turn("claude", "headless", &[], &reading("Read", file.to_str().unwrap()));
    assert_eq!((&live["subtype"], &live["result"]), (&"success".into(), &"All done".into()), "{live:#}");
    let home = machine.home.state("agents/claude");
    let home = [("CLAUDE_CONFIG_DIR", home.to_str().unwrap())];
    let list = machine.ran(&["sessions", "list", "--all", "--agent", "claude", "--json"], &home).json();
    let id = list[0]["id"].as_str().unwrap();
    let exported = machine.ran(&["sessions", "export", id, "--json", "--no-originals"], &home).json();
    let (tools, text) = told(&exported["messages"]);
    assert_eq!((tools, text.as_str()), (vec!["Read".to_owned()], "Looking.All done"), "{exported:#}");
    assert_eq!(told(&live["messages"]).1, "Looking.All done", "{live:#}");
    for field in ["input_tokens", "output_tokens"] {
        assert_eq!(exported["usage"][field], live["usage"][field], "{field}: {live:#} {exported:#}");
    }
    // In chat it has no tools, and goes on with the session as well.
    let chat = machine.run(&["run", "--agent", "claude", "--output-format", "json", "the word is quince"]);
    let declared = model.model_calls().last().unwrap()["tools"].as_array().map_or(0, Vec::len);
    assert_eq!(declared, 0, "{chat:#}");
}
