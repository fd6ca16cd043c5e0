//! The real Claude Code, Codex and OpenCode against the fake model over bare stdio: proves the fake in each dialect,
//! and that none of them needs the network.

use std::path::Path;
use std::process::{Command, Stdio};

use gembridge_testkit::model_api::FakeModel;
use gembridge_testkit::raw_acp::{Exchange, RawAcp};
use gembridge_testkit::{claude_command, codex_command, opencode_command};
use serde_json::{Value, json};

/// One agent in a session of its own; permissions are granted.
struct Fixture {
    folder: tempfile::TempDir,
    model: FakeModel,
}

impl Fixture {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("workspace")).unwrap();
        std::fs::write(folder.path().join("workspace/note.txt"), "a line of the note").unwrap();
        Self { folder, model: FakeModel::start().await.unwrap() }
    }

    fn home(&self) -> &Path {
        self.folder.path()
    }

    /// Prompts the agent with these, in a thread where it may block.
    async fn prompted(&self, mut command: Command, version: &'static str, prompts: [String; 2]) -> [Exchange; 2] {
        let workspace = self.home().join("workspace");
        command.current_dir(&workspace).stderr(Stdio::null());
        let talk = move || {
            let mut agent = RawAcp::start(&mut command).unwrap();
            let initialized = agent.initialize();
            assert_eq!(initialized["result"]["agentInfo"]["version"], version);
            let session = agent.open_session(workspace.to_str().unwrap());
            prompts.map(|prompt| {
                let id = agent.start_prompt(&session, &prompt);
                agent.finish(id, |asked| {
                    let options = asked["params"]["options"].as_array().unwrap();
                    let once = options.iter().find(|option| option["kind"] == "allow_once").unwrap();
                    json!({"outcome": {"outcome": "selected", "optionId": once["optionId"]}})
                })
            })
        };
        tokio::task::spawn_blocking(talk).await.unwrap()
    }
}

/// A prompt whose model calls a tool and then repeats what it returned.
fn calling(name: &str, args: &Value) -> String {
    let call = json!({"call": {"name": name, "args": args}});
    format!("please SCRIPT:{}:END", json!({"calls": [[call], [{"results": "it says"}]]}))
}

fn check([plain, scripted]: &[Exchange; 2], model: &FakeModel) {
    // Claude Code puts notes of its own before the words.
    assert!(plain.text().starts_with("You said: ") && plain.text().ends_with("ping"), "{}", plain.text());
    assert!(scripted.text().contains("it says") && scripted.text().contains("a line of the note"), "{scripted:#?}");
    assert_eq!(scripted.response["result"]["stopReason"], "end_turn");
    let calls = model.model_calls();
    assert!(calls.len() >= 3, "one for `ping`, two for the script: {}", calls.len());
    assert!(model.requests().iter().any(|request| request.text.contains("a line of the note")));
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_code_reads_a_file_for_the_fake_model() {
    let fixture = Fixture::new().await;
    let note = fixture.home().join("workspace/note.txt");
    let prompts = ["ping".to_owned(), calling("Read", &json!({"file_path": note}))];
    let command = claude_command(&fixture.home().join("home"), &fixture.model.url());
    check(&fixture.prompted(command, "0.99.0", prompts).await, &fixture.model);
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_runs_a_command_for_the_fake_model() {
    let fixture = Fixture::new().await;
    let prompts = ["ping".to_owned(), calling("exec_command", &json!({"cmd": "cat note.txt"}))];
    let command = codex_command(&fixture.home().join("home"), &fixture.model.url_v1()).unwrap();
    check(&fixture.prompted(command, "2.6.0", prompts).await, &fixture.model);
}

#[tokio::test(flavor = "multi_thread")]
async fn opencode_reads_a_file_for_the_fake_model() {
    let fixture = Fixture::new().await;
    let note = fixture.home().join("workspace/note.txt");
    let prompts = ["ping".to_owned(), calling("read", &json!({"filePath": note}))];
    let command = opencode_command(&fixture.home().join("home"), &fixture.model.url_v1()).unwrap();
    check(&fixture.prompted(command, "1.18.33", prompts).await, &fixture.model);
}
