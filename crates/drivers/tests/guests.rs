//! The real Claude Code, Codex and OpenCode as a guest has them: inside the fence they answer, and even with their own tools on
//! they reach no file of the operator's.

#[path = "support/agent_fixture.rs"]
#[expect(dead_code, reason = "shared with tests that run other agents")]
mod agent_fixture;

use std::fs;
use std::path::{Path, PathBuf};

use agent_fixture::{AgentFixture, Client, ScriptedAgent, path};
use gembridge_core::model::{Answer, Event};
use gembridge_drivers::profile::{AgentConfig, Environment, Layer, Profile};
use gembridge_drivers::setup::Audience;
use gembridge_testkit::model_api::FakeModel;
use gembridge_testkit::{codex_settings, opencode_settings, real_claude, real_codex, real_opencode};
use serde_json::{Value, json};

/// One agent, its fake model, and a file of the operator's.
struct Fixture {
    agent: AgentFixture,
    model: FakeModel,
    secret: PathBuf,
}

impl Fixture {
    /// The agent for guests, with its own tools on or off. `variables` may name files in the given folder.
    async fn new(
        agent: &str,
        program: PathBuf,
        tools: OwnTools,
        variables: impl FnOnce(&FakeModel, &Path) -> Vec<(&'static str, String)>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = FakeModel::start().await.unwrap();
        let mut profile = Profile::custom(agent, &AgentConfig::default(), &Profile::builtin().unwrap()).unwrap();
        profile.limits.start_seconds = 150;
        if tools == OwnTools::On {
            profile.chat = Layer::default();
        }
        let home = folder.path().join("home");
        fs::create_dir_all(home.join(".config")).unwrap();
        let secret = home.join(".config/key");
        fs::write(&secret, "canary").unwrap();
        let mut environment = Environment::from([("PATH".to_owned(), path())]);
        environment.insert("HOME".to_owned(), home.display().to_string());
        environment.insert("XDG_CONFIG_HOME".to_owned(), home.join(".config").display().to_string());
        environment.extend(variables(&model, folder.path()).into_iter().map(|(name, value)| (name.to_owned(), value)));
        let mut plan = ScriptedAgent::of(profile, program, None, folder);
        plan.setup.audience = Audience::Guests;
        plan.setup.login = plan.setup.profile.find_guest_login(&environment);
        plan.setup.environment = environment;
        plan.setup.shim = None;
        Self { agent: plan.start(), model, secret }
    }

    /// What the model is told when it calls this tool of the agent's own, every permission granted.
    async fn tool(&self, name: &str, args: &Value) -> String {
        let mut client = self.agent.session().await;
        let script = json!({"calls": [[{"call": {"name": name, "args": args}}], [{"results": "it says"}]]});
        granted(&mut client, &format!("please SCRIPT:{script}:END")).await
    }

    async fn end(self) {
        self.agent.end().await;
    }
}

#[derive(PartialEq, Eq)]
enum OwnTools {
    Off,
    On,
}

async fn granted(client: &mut Client, prompt: &str) -> String {
    let turn = client.prompt(prompt).await;
    loop {
        match client.next().await.event {
            Event::Asked(ask) => {
                let answer = ask.allow_once().unwrap_or(Answer::Cancelled);
                client.answer(ask.id, answer).await.unwrap();
            }
            Event::Ended(_) => return client.finish(turn).await.text(),
            _ => {}
        }
    }
}

fn claude(model: &FakeModel, _: &Path) -> Vec<(&'static str, String)> {
    vec![("ANTHROPIC_API_KEY", "fake-key".to_owned()), ("ANTHROPIC_BASE_URL", model.url())]
}

fn opencode(model: &FakeModel, folder: &Path) -> Vec<(&'static str, String)> {
    let settings = folder.join("opencode.json");
    fs::write(&settings, opencode_settings(&model.url_v1())).unwrap();
    vec![("OPENCODE_CONFIG", settings.display().to_string())]
}

#[tokio::test(flavor = "multi_thread")]
async fn fence_leaves_claude_code_what_it_needs_for_a_turn() {
    let fixture = Fixture::new("claude", real_claude(), OwnTools::Off, claude).await;
    let mut client = fixture.agent.session().await;
    let said = client.turn("ping").await.finished();
    assert!(said.starts_with("You said: ") && said.ends_with("ping"), "{said}");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fence_keeps_the_tools_of_claude_code_from_the_operators_files() {
    let fixture = Fixture::new("claude", real_claude(), OwnTools::On, claude).await;
    let told =
        fixture.tool("Bash", &json!({"command": "echo in the shell; cat $HOME/../../../../home/.config/key"})).await;
    assert!(told.contains("it says"), "{told}");
    fixture.tool("Bash", &json!({"command": format!("cat {}", fixture.secret.display())})).await;
    fixture.tool("Read", &json!({"file_path": fixture.secret})).await;
    assert!(fixture.model.requests().iter().all(|request| !request.text.contains("canary")));
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fence_leaves_opencode_what_it_needs_for_a_turn() {
    let fixture = Fixture::new("opencode", real_opencode(), OwnTools::Off, opencode).await;
    let mut client = fixture.agent.session().await;
    assert_eq!(client.turn("ping").await.finished(), "You said: ping");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fence_keeps_the_tools_of_opencode_from_the_operators_files() {
    let fixture = Fixture::new("opencode", real_opencode(), OwnTools::On, opencode).await;
    let shell =
        json!({"command": format!("echo in the shell; cat {}", fixture.secret.display()), "description": "look"});
    let told = fixture.tool("bash", &shell).await;
    assert!(told.contains("in the shell") && told.contains("Permission denied"), "{told}");
    fixture.tool("read", &json!({"filePath": fixture.secret})).await;
    assert!(fixture.model.requests().iter().all(|request| !request.text.contains("canary")));
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fence_keeps_the_shell_of_codex_from_the_operators_files() {
    // Codex reads from its home where its model is, so the profile of this test writes that into the guest's home.
    let folder = tempfile::tempdir().unwrap();
    let model = FakeModel::start().await.unwrap();
    let mut profile = Profile::builtin().unwrap().into_iter().find(|profile| profile.name == "codex").unwrap();
    profile.limits.start_seconds = 150;
    profile.private_home.file.push(gembridge_drivers::profile::FileTemplate {
        path: "{state}/config.toml".to_owned(),
        content: codex_settings(&model.url_v1()),
        content_in_chat: None,
        content_if_denied: String::new(),
        content_if_native: String::new(),
    });
    let secret = folder.path().join("key");
    fs::write(&secret, "canary").unwrap();
    let mut plan = ScriptedAgent::of(profile, real_codex(), None, folder);
    plan.setup.audience = Audience::Guests;
    plan.setup.environment.insert("OPENAI_API_KEY".to_owned(), "fake-key".to_owned());
    plan.setup.login = plan.setup.profile.find_guest_login(&plan.setup.environment);
    plan.setup.shim = None;
    let fixture = Fixture { agent: plan.start(), model, secret };
    let command = format!("echo in the shell; cat {}", fixture.secret.display());
    let told = fixture.tool("exec_command", &json!({"cmd": command})).await;
    assert!(told.contains("it says"), "{told}");
    assert!(fixture.model.requests().iter().all(|request| !request.text.contains("canary")));
    fixture.end().await;
}
