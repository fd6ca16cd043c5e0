//! The other real agents behind their adapters, offline on a fake of their models: a prompt, a function, a typed answer.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gembridge_sdk::schemars::{self, JsonSchema};
use gembridge_sdk::{Adapter, AdapterBuilder, Tool, ToolOrigin};
use gembridge_testkit::model_api::FakeModel;
use gembridge_testkit::{codex_settings, opencode_settings, real_claude, real_codex, real_opencode, real_qwen};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

#[derive(Debug, Deserialize, JsonSchema)]
struct Numbers {
    a: i64,
    b: i64,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Review {
    summary: String,
    score: u8,
}

/// A home and a workspace of the test's own.
struct Place {
    folder: TempDir,
    model: FakeModel,
}

impl Place {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "workspace"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, model: FakeModel::start().await.unwrap() }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn set_up(&self, adapter: AdapterBuilder, program: &Path) -> AdapterBuilder {
        let add = Tool::new("add", "Adds two numbers", |numbers: Numbers| async move { Ok(numbers.a + numbers.b) });
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("agents-cache");
        adapter
            .program(program)
            .helper_program(env!("CARGO_BIN_EXE_sdk-test-helper"))
            .workspace(self.folder.path().join("workspace"))
            .env("HOME", self.home().display().to_string())
            .env("XDG_CACHE_HOME", cache.display().to_string())
            .startup_timeout(Duration::from_secs(150))
            .tool(add)
    }
}

/// A prompt whose model makes this call as the agent lets it, and then says that it is done.
fn calling(prefix: &str, name: &str, args: &Value) -> String {
    let call = json!({"call": {"name": format!("{prefix}{name}"), "args": args}});
    format!("please SCRIPT:{}:END", json!({"calls": [[call], [{"text": "done"}]]}))
}

async fn prompts_functions_and_types_work(adapter: AdapterBuilder, calling: impl Fn(&str, &Value) -> String) {
    let adapter = adapter.build().unwrap();
    let reply = adapter.evaluate("ping").await.unwrap();
    assert!(reply.text.contains("You said: ") && reply.text.ends_with("ping"), "{}", reply.text);

    let reply = adapter.evaluate(calling("add", &json!({"a": 2, "b": 40}))).await.unwrap();
    assert_eq!(reply.text, "done");
    let of_the_program: Vec<_> = reply.tools.iter().filter(|tool| tool.origin == ToolOrigin::Program).collect();
    let [tool] = &of_the_program[..] else { panic!("{:?}", reply.tools) };
    assert_eq!((tool.name.as_str(), tool.output.as_deref()), ("add", Some("42")));

    let review = json!({"summary": "clear", "score": 9});
    let answer = adapter.evaluate_as::<Review>(calling("structured_output", &review)).await.unwrap();
    assert_eq!(answer.value, Review { summary: "clear".to_owned(), score: 9 });
    adapter.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claude_answers_calls_and_delivers() {
    let place = Place::new().await;
    // A variable of some containers, by which its adapter asks for rights that Claude Code refuses to root.
    let adapter = place.set_up(Adapter::claude(), &real_claude()).env_remove("IS_SANDBOX");
    let adapter = adapter.env("ANTHROPIC_API_KEY", "fake-key").env("ANTHROPIC_BASE_URL", place.model.url());
    prompts_functions_and_types_work(adapter, |name, args| calling("mcp__host-tools__", name, args)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_answers_calls_and_delivers() {
    let place = Place::new().await;
    std::fs::create_dir(place.home().join(".codex")).unwrap();
    std::fs::write(place.home().join(".codex/config.toml"), codex_settings(&place.model.url_v1())).unwrap();
    let adapter = place.set_up(Adapter::codex(), &real_codex()).env("OPENAI_API_KEY", "fake-key");
    // Its model finds tools of servers by a search, and calls them in their group.
    let calling = |name: &str, args: &Value| {
        let search = json!({"call": {"name": "tool_search", "args": {"query": name}}});
        let call = json!({"call": {"name": name, "namespace": "mcp__host_tools", "args": args}});
        format!("please SCRIPT:{}:END", json!({"calls": [[search], [call], [{"text": "done"}]]}))
    };
    prompts_functions_and_types_work(adapter, calling).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn opencode_answers_calls_and_delivers() {
    let place = Place::new().await;
    let settings = place.folder.path().join("opencode.json");
    std::fs::write(&settings, opencode_settings(&place.model.url_v1())).unwrap();
    let adapter = place.set_up(Adapter::opencode(), &real_opencode());
    let adapter = adapter.env("OPENCODE_CONFIG", settings.display().to_string());
    prompts_functions_and_types_work(adapter, |name, args| calling("host-tools_", name, args)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn qwen_answers_calls_and_delivers() {
    let place = Place::new().await;
    let adapter = place.set_up(Adapter::qwen(), &real_qwen());
    let adapter = adapter.env("OPENAI_API_KEY", "fake-key").env("OPENAI_BASE_URL", place.model.url_v1());
    let adapter = adapter.env("OPENAI_MODEL", "fake");
    prompts_functions_and_types_work(adapter, |name, args| calling("mcp__host-tools__", name, args)).await;
}
