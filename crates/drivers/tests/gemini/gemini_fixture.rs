//! A fixture for the real CLI, the API that it calls, and the words that tests use about both.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent_fixture::turn_items::{Item, ToolItem};
use gembridge_core::driver::ToolServer;
use gembridge_core::model::{Answer, Ask, AskBody, Content, Event, ToolContent};
use gembridge_core::session::NewSession;
use gembridge_core::turn::PermissionPolicy;
use gembridge_drivers::profile::{AgentConfig, Environment, Profile};
use gembridge_drivers::setup::{Home, Spares};
use gembridge_testkit::gemini_api::{FakeGemini, Recorded};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agent_fixture::{AgentFixture, Client, ScriptedAgent, Turned, path};

/// What a fixture is built from. Change what a test is about.
pub struct GeminiAgent {
    pub plan: ScriptedAgent,
    api: FakeGemini,
}

pub struct GeminiFixture {
    pub api: FakeGemini,
    pub fixture: AgentFixture,
}

impl Deref for GeminiFixture {
    type Target = AgentFixture;

    fn deref(&self) -> &AgentFixture {
        &self.fixture
    }
}

impl GeminiAgent {
    /// As an agent, in a trusted workspace.
    pub async fn agent() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        Self::of(&[], Some(workspace), folder).await
    }

    /// As a model, with these of its own tools left on.
    pub async fn chat(native_tools: &[&str]) -> Self {
        let mut fixture = Self::of(native_tools, None, tempfile::tempdir().unwrap()).await;
        fixture.plan.policy = PermissionPolicy::reject();
        fixture
    }

    async fn of(native_tools: &[&str], workspace: Option<PathBuf>, folder: TempDir) -> Self {
        let native_tools = native_tools.iter().map(|tool| (*tool).to_owned()).collect();
        let config = AgentConfig { native_tools, ..AgentConfig::default() };
        let profile = Profile::custom("gemini", &config, &Profile::builtin().unwrap()).unwrap();
        let api = FakeGemini::start().await.unwrap();
        let home = folder.path().join("home");
        fs::create_dir(&home).unwrap();
        let mut plan = ScriptedAgent::of(profile, gembridge_testkit::real_gemini(), workspace, folder);
        plan.setup.environment = Environment::from([
            ("PATH".to_owned(), path()),
            ("HOME".to_owned(), home.display().to_string()),
            ("GEMINI_API_KEY".to_owned(), "fake-key".to_owned()),
            ("GOOGLE_GEMINI_BASE_URL".to_owned(), api.url()),
        ]);
        plan.setup.login = plan.setup.profile.find_login(&plan.setup.environment, &|path| path.exists());
        // As long as a loaded machine may need for it.
        plan.setup.profile.limits.start_seconds = 150;
        // What the CLI compiled once serves every test.
        plan.setup.cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gemini-cache");
        Self { plan, api }
    }

    #[must_use]
    pub fn with_spares(mut self) -> Self {
        self.plan.spares = Spares::OfTheProfile;
        self
    }

    /// With the workspace and the home of the agent in a folder that outlives the fixture.
    #[must_use]
    pub fn lasting(mut self, folder: &Path) -> Self {
        let workspace = folder.join("workspace");
        fs::create_dir_all(&workspace).unwrap();
        self.plan.setup.workspace = Some(workspace);
        self.plan.setup.home = Home::Lasting(folder.join("agent-home"));
        self
    }

    pub fn start(self) -> GeminiFixture {
        GeminiFixture { api: self.api, fixture: self.plan.start() }
    }
}

impl GeminiFixture {
    pub async fn session_with_tools(&self, server: ToolServer) -> Client {
        self.session_with(NewSession { tool_servers: vec![server], ..self.new_session() }).await
    }

    pub async fn end(self) {
        self.fixture.end().await;
    }
}

/// A prompt that makes the fake model answer so, one list of steps for each model call.
#[expect(clippy::needless_pass_by_value, reason = "the callers write their calls in place")]
pub fn script(calls: Value) -> String {
    format!("please SCRIPT:{}:END", json!({ "calls": calls }))
}

/// A prompt that makes the fake model call one tool and then say `done`.
#[expect(clippy::needless_pass_by_value, reason = "the callers write their arguments in place")]
pub fn calling(tool: &str, arguments: Value) -> String {
    script(json!([[{"call": {"name": tool, "id": "c1", "args": arguments}}], [{"text": "done"}]]))
}

/// A turn whose questions are answered as they come.
pub struct Answered {
    pub turned: Turned,
    pub asks: Vec<Ask>,
}

impl Deref for Answered {
    type Target = Turned;

    fn deref(&self) -> &Turned {
        &self.turned
    }
}

pub async fn turn_answering(client: &mut Client, text: &str, answer: impl Fn(&Ask) -> Answer) -> Answered {
    let turn = client.prompt(text).await;
    let mut asks = Vec::new();
    loop {
        match client.next().await.event {
            Event::Asked(ask) => {
                client.answer(ask.id, answer(&ask)).await.unwrap();
                asks.push(*ask);
            }
            Event::Ended(_) => return Answered { turned: client.finish(turn).await, asks },
            _ => {}
        }
    }
}

pub fn allow(ask: &Ask) -> Answer {
    ask.allow_once().unwrap()
}

pub fn refuse(ask: &Ask) -> Answer {
    ask.reject()
}

/// The turn's tool calls as they stand at its end.
pub fn tools_of(turned: &Turned) -> Vec<ToolItem> {
    let fold = turned.fold();
    let tools = fold.items().iter().filter_map(|item| match item {
        Item::Tool(tool) => Some(tool.clone()),
        _ => None,
    });
    tools.collect()
}

pub fn only_tool_of(turned: &Turned) -> ToolItem {
    let mut tools = tools_of(turned);
    assert_eq!(tools.len(), 1, "{tools:?}");
    tools.remove(0)
}

/// All text that a tool showed.
pub fn output_of(tool: &ToolItem) -> String {
    let shown = tool.call.content.iter().flatten().filter_map(|content| match content {
        ToolContent::Content(Content::Text(text)) => Some(text.to_str().into_owned()),
        _ => None,
    });
    shown.collect()
}

pub fn title_of(ask: &Ask) -> Arc<str> {
    let AskBody::Permission { tool, .. } = &ask.body else { panic!("no permission: {ask:?}") };
    tool.title.clone().unwrap_or_default()
}

/// What the model was told that a tool answered.
pub fn told_to_the_model(call: &Recorded) -> String {
    let contents = call.body["contents"].as_array().unwrap();
    let parts = contents.iter().flat_map(|content| content["parts"].as_array().unwrap());
    parts.filter_map(|part| part.get("functionResponse")).map(ToString::to_string).collect()
}
