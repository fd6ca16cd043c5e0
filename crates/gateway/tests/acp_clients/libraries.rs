//! The libraries of the protocol, and acpx through `gembridge connect`.

use std::fs;

use gembridge_testkit::gemini_api::FakeGemini;
use gembridge_testkit::real_gemini;

use crate::schema::Published;
use crate::support::gateway::Gateway;
use crate::support::home::Home;
use crate::support::script::Script;

/// A home with a workspace that agents may work in, and an agent that does, with these further settings.
pub fn home(agent: &str, further: &str) -> Home {
    let home = Home::for_serving();
    let workspace = home.path("workspace");
    fs::create_dir(&workspace).unwrap();
    let folder = workspace.to_str().unwrap();
    home.stdout_of(&["trust", "add", folder]);
    home.configure_serving(&format!("[agents.{agent}]\nmode = \"agent\"\nworkspace = {folder:?}\n{further}\n"));
    home
}

fn demo() -> Gateway {
    let home = home("demo", "");
    let tap = home.path("tap.jsonl");
    home.serve_with(&["--agent", "demo", "--tap", tap.to_str().unwrap()], &[])
}

/// With what serves the API that the CLI calls.
fn gemini() -> (tokio::runtime::Runtime, FakeGemini, Gateway) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let fake = runtime.block_on(FakeGemini::start()).unwrap();
    let variables = [
        ("PATH", std::env::var("PATH").unwrap()),
        ("GEMINI_CLI_PATH", real_gemini().display().to_string()),
        ("GEMINI_API_KEY", "fake-key".to_owned()),
        ("GOOGLE_GEMINI_BASE_URL", fake.url()),
    ];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let home = home("gemini", "limits.start_seconds = 150");
    let tap = home.path("tap.jsonl");
    let gateway = home.serve_with(&["--agent", "gemini", "--tap", tap.to_str().unwrap()], &variables);
    (runtime, fake, gateway)
}

/// Everything that was said to clients is as the protocol's schema says.
#[track_caller]
fn was_as_published(mut gateway: Gateway) {
    gateway.signal(rustix::process::Signal::TERM);
    assert!(gateway.ended().success());
    let checked = Published::load().check_tap(&gateway.home.path("tap.jsonl"));
    assert!(checked > 50, "only {checked} messages");
}

#[test]
fn the_typescript_library_works_with_the_demo_agent() {
    let gateway = demo();
    Script::node("acp-sdk.mjs").succeeds(&gateway, "demo");
    was_as_published(gateway);
}

#[test]
fn the_python_library_works_with_the_demo_agent() {
    let gateway = demo();
    Script::python("acp_sdk.py").succeeds(&gateway, "demo");
    was_as_published(gateway);
}

#[test]
fn acpx_works_with_the_demo_agent() {
    let gateway = demo();
    Script::node("acpx.mjs").succeeds(&gateway, "demo");
    was_as_published(gateway);
}

#[test]
fn every_client_works_with_the_real_gemini_cli() {
    let (_runtime, _fake, gateway) = gemini();
    Script::node("acp-sdk.mjs").succeeds(&gateway, "gemini");
    Script::python("acp_sdk.py").succeeds(&gateway, "gemini");
    Script::node("acpx.mjs").succeeds(&gateway, "gemini");
    assert!(gateway.home.path("workspace/made").exists(), "the tool that was allowed ran");
    was_as_published(gateway);
}
