//! The compatibility matrix: what the library needs of the real Gemini CLI, offline on a fake of its API.

mod wire;

use std::path::{Path, PathBuf};
use std::time::Duration;

use gembridge_sdk::schemars::{self, JsonSchema};
use gembridge_sdk::{
    Adapter, AdapterBuilder, Decision, ErrorKind, Permissions, Phase, Prompt, Tool, ToolOrigin, ToolStatus, TurnEvent,
};
use gembridge_testkit::gemini_api::FakeGemini;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

struct Gemini {
    folder: TempDir,
    api: FakeGemini,
}

impl Gemini {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "workspace"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, api: FakeGemini::start().await.unwrap() }
    }

    fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// As a user would have it: their home, their key, nothing set up by us.
    fn adapter(&self) -> AdapterBuilder {
        // What the CLI compiled once serves every test.
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gemini-cache");
        Adapter::gemini()
            .program(gembridge_testkit::real_gemini())
            .helper_program(env!("CARGO_BIN_EXE_sdk-test-helper"))
            .workspace(self.workspace())
            .env("HOME", self.folder.path().join("home").display().to_string())
            .env("XDG_CACHE_HOME", cache.display().to_string())
            .env("GEMINI_API_KEY", "fake-key")
            .env("GOOGLE_GEMINI_BASE_URL", self.api.url())
            // As long as a loaded machine may need for it.
            .startup_timeout(Duration::from_secs(150))
    }
}

/// A prompt that makes the fake model answer so, one list of steps for each model call.
fn script(calls: &Value) -> String {
    format!("please SCRIPT:{}:END", json!({ "calls": calls }))
}

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

#[tokio::test(flavor = "multi_thread")]
async fn text_thoughts_tokens_images_and_documents_pass_in_both_directions() {
    let gemini = Gemini::new().await;
    let adapter = gemini.adapter().build().unwrap();
    assert_eq!(adapter.name(), "gemini_acp");
    let reply = adapter.evaluate("ping").await.unwrap();
    assert_eq!(reply.text, "You said: ping", "no login was asked for, whatever methods the handshake names");
    let usage = reply.usage.unwrap();
    assert!(usage.input.is_some() && usage.output.is_some(), "{usage:?}");
    assert_eq!(usage.cached, None, "the CLI does not report cached tokens over ACP");

    let thinking = script(&json!([[{"thought": "**Plan** it"}, {"text": "Hello"}, {"text": " world"}]]));
    let reply = adapter.evaluate(thinking).await.unwrap();
    assert_eq!(reply.text, "Hello world");
    assert!(reply.thoughts.contains("Plan"), "{}", reply.thoughts);

    // One at a time: the CLI leaves out an image that comes with a document.
    for (prompt, wanted) in [
        (Prompt::new("What is this?").image("image/png", b"not a picture"), "bm90IGEgcGljdHVyZQ=="),
        (Prompt::new("What is this?").document("notes.md", "the words of it"), "the words of it"),
    ] {
        gemini.api.forget_requests();
        adapter.evaluate(prompt).await.unwrap();
        let contents = gemini.api.model_calls()[0].body["contents"].to_string();
        assert!(contents.contains("What is this?") && contents.contains(wanted), "{contents}");
    }
    adapter.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_and_typed_answers_go_over_http_with_a_token() {
    let gemini = Gemini::new().await;
    let add = Tool::new("add", "Adds two numbers", |numbers: Numbers| async move { Ok(numbers.a + numbers.b) });
    let adapter = gemini.adapter().tool(add).build().unwrap();
    let call = json!({"call": {"name": "mcp_host-tools_add", "id": "c1", "args": {"a": 2, "b": 40}}});
    let reply = adapter.evaluate(script(&json!([[call], [{"text": "done"}]]))).await.unwrap();
    assert_eq!(reply.text, "done");
    let [tool] = &reply.tools[..] else { panic!("{:?}", reply.tools) };
    assert_eq!((tool.name.as_str(), tool.origin, tool.output.as_deref()), ("add", ToolOrigin::Program, Some("42")));
    let told = gemini.api.model_calls()[1].body.to_string();
    assert!(told.contains("42"), "{told}");

    let review = json!({"summary": "clear", "score": 9});
    let call = json!({"call": {"name": "mcp_host-tools_structured_output", "id": "c2", "args": review}});
    let answer = adapter.evaluate_as::<Review>(script(&json!([[call], [{"text": "delivered"}]]))).await.unwrap();
    assert_eq!(answer.value, Review { summary: "clear".to_owned(), score: 9 });
    assert_eq!(adapter.processes(), 1, "one process serves all sessions");
    adapter.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_own_tools_have_names_ids_and_results_and_ask_for_permission() {
    let gemini = Gemini::new().await;
    let workspace = gemini.workspace();
    let call = |id: &str, name: &str, arguments: Value| json!({"call": {"name": name, "id": id, "args": arguments}});
    let calls = json!([
        [
            call("c1", "list_directory", json!({"dir_path": workspace})),
            call("c2", "write_file", json!({"file_path": workspace.join("new.txt"), "content": "words"})),
            call("c3", "run_shell_command", json!({"command": "touch made"})),
        ],
        [{"text": "done"}],
    ]);
    let adapter = gemini.adapter().build().unwrap();
    let mut stream = adapter.stream(script(&calls)).await.unwrap();
    let mut asked = 0;
    while let Some(event) = stream.next().await {
        asked += usize::from(matches!(event, TurnEvent::Permission(_)));
    }
    let reply = stream.finish().await.unwrap();
    assert_eq!(reply.text, "done");
    assert_eq!(asked, 2, "only what changes something asks");
    assert_eq!(std::fs::read_to_string(workspace.join("new.txt")).unwrap(), "words");
    assert!(workspace.join("made").exists());
    assert_eq!(reply.tools.len(), 3, "{:?}", reply.tools);
    assert!(reply.tools.iter().all(|tool| tool.succeeded() && !tool.id.is_empty()), "{:?}", reply.tools);
    let results = serde_json::to_string(&reply.transcript).unwrap().matches("\"tool_result\"").count();
    assert_eq!(results, 3, "one for each call");
    adapter.close().await;

    let refusing = Permissions::ask(|request| async move {
        if request.kind == "execute" { Decision::Reject } else { Decision::AllowOnce }
    });
    let adapter = gemini.adapter().permissions(refusing).build().unwrap();
    let call = call("c4", "run_shell_command", json!({"command": "touch never"}));
    let reply = adapter.evaluate(script(&json!([[call], [{"text": "done"}]]))).await.unwrap();
    assert!(!workspace.join("never").exists());
    assert!(reply.tools.iter().all(|tool| tool.status == ToolStatus::Failed), "{:?}", reply.tools);
    adapter.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_checked_against_its_list_and_a_deadline_cancels_its_turn() {
    let gemini = Gemini::new().await;
    let adapter = gemini.adapter().model("gemini-9-imaginary").build().unwrap();
    let error = adapter.evaluate("ping").await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Request, &ErrorKind::UnknownModel));
    assert!(error.message.contains("gemini-2.5-pro"), "{error}");
    adapter.close().await;

    let adapter = gemini.adapter().model("gemini-2.5-pro").build().unwrap();
    let mut session = adapter.session().await.unwrap();
    assert_eq!(session.evaluate("ping").await.unwrap().text, "You said: ping");
    assert!(gemini.api.model_calls().last().unwrap().path.contains("gemini-2.5-pro"));
    let stalled = script(&json!([[{"text": "first"}, {"stall": true}]]));
    let error = session.evaluate(Prompt::new(stalled).within(Duration::from_secs(3))).await.unwrap_err();
    assert_eq!((error.phase, &error.kind), (Phase::Request, &ErrorKind::Deadline), "{error}");
    assert_eq!(session.evaluate("still there?").await.unwrap().text, "You said: still there?");
    adapter.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_evaluations_at_once_share_one_process() {
    let gemini = Gemini::new().await;
    let adapter = gemini.adapter().build().unwrap();
    let asked = (0..64).map(|number| {
        let adapter = adapter.clone();
        async move { (number, adapter.evaluate(format!("ping {number}")).await.unwrap()) }
    });
    for (number, reply) in futures_util::future::join_all(asked).await {
        assert_eq!(reply.text, format!("You said: ping {number}"));
    }
    assert_eq!(adapter.processes(), 1);
    adapter.close().await;
}
