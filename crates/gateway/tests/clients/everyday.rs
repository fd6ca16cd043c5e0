//! An ordinary day: chat, streams, images, twenty turns, every script, models.

use std::collections::BTreeSet;
use std::thread;

use gembridge_testkit::gemini_api::{FakeGemini, Recorded};
use gembridge_testkit::real_gemini;
use serde_json::Value;

use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::script::Script;

#[test]
fn openai_python_works_with_the_demo_agent() {
    Script::python("openai_chat.py").succeeds(&Home::for_serving().serve(), "demo");
}

#[test]
fn openai_python_works_with_the_demo_agent_without_blocking() {
    Script::python("openai_async.py").succeeds(&Home::for_serving().serve(), "demo");
}

#[test]
fn openai_node_works_with_the_demo_agent() {
    Script::node("openai-chat.mjs").succeeds(&Home::for_serving().serve(), "demo");
}

#[test]
fn langchain_works_with_the_demo_agent() {
    Script::python("langchain_chat.py").succeeds(&Home::for_serving().serve(), "demo");
}

#[test]
fn the_ai_sdk_works_with_the_demo_agent() {
    Script::node("ai-sdk.mjs").succeeds(&Home::for_serving().serve(), "demo");
}

/// One gateway and one CLI serve those in Python and those in JavaScript at the same time.
#[test]
fn every_client_works_with_the_real_gemini_cli() {
    let (api, gateway) = gemini();
    thread::scope(|scope| {
        scope.spawn(|| {
            for script in ["openai_chat.py", "openai_async.py", "langchain_chat.py"] {
                Script::python(script).succeeds(&gateway, "gemini");
            }
        });
        for script in ["openai-chat.mjs", "ai-sdk.mjs"] {
            Script::node(script).succeeds(&gateway, "gemini");
        }
    });

    let calls = api.fake.model_calls();
    for (client, turns) in [("openai-python", 20), ("openai-node", 20), ("LangChain", 4), ("the AI SDK", 4)] {
        let expected: Vec<String> = (1..=turns).map(|turn| format!("Turn {turn} of {client}.")).collect();
        let own: Vec<_> =
            calls.iter().filter(|call| said_by_user(call).last().is_some_and(|said| expected.contains(said))).collect();
        assert_eq!(own.len(), turns, "{client}: one call of the model for each turn");
        let heard: Vec<String> =
            said_by_user(own[turns - 1]).into_iter().filter(|said| said.starts_with("Turn ")).collect();
        assert_eq!(heard, expected, "{client}: the agent's own memory holds the conversation");
        assert!(!own[turns - 1].body.to_string().contains("[User]"), "{client}: no history was told again");
    }
    let carry = |media: &str| calls.iter().filter(|call| call.body.to_string().contains(media)).count();
    assert_eq!(carry(r#""mimeType":"image/png""#), 2, "one of each library");
    assert_eq!(
        (carry(r#""mimeType":"audio/wav""#), carry("aGVsbG8=")),
        (1, 1),
        "openai-python sent a sound and a file"
    );
    let models: BTreeSet<_> = calls.iter().map(|call| call.path.split([':', '/']).nth(3).unwrap_or_default()).collect();
    assert!(models.contains("gemini-2.5-pro"), "`gpt-4` stands for it: {models:?}");
}

/// The API that the CLI calls, and what serves it.
pub struct Api {
    pub fake: FakeGemini,
    _runtime: tokio::runtime::Runtime,
}

pub fn gemini() -> (Api, Gateway) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let fake = runtime.block_on(FakeGemini::start()).unwrap();
    let variables = [
        ("PATH", std::env::var("PATH").unwrap()),
        ("GEMINI_CLI_PATH", real_gemini().display().to_string()),
        ("GEMINI_API_KEY", "fake-key".to_owned()),
        ("GOOGLE_GEMINI_BASE_URL", fake.url()),
    ];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let home = Home::for_serving();
    home.configure_serving("[agents.gemini]\nlimits.start_seconds = 150\n");
    let gateway = home.serve_with(&["--agent", "gemini"], &variables);
    (Api { fake, _runtime: runtime }, gateway)
}

/// Every text of the user that the model was told. The CLI puts the surroundings before the first.
fn said_by_user(call: &Recorded) -> Vec<String> {
    let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let contents = all(&call.body["contents"]);
    let parts = contents.iter().filter(|content| content["role"] == "user").flat_map(|content| all(&content["parts"]));
    parts.filter_map(|part| part["text"].as_str().map(str::to_owned)).collect()
}
