//! The protocol's own conformance suite against an endpoint of the bridge. The suite cannot show a token, and there is no
//! way in without one: a proxy adds it. What the suite asks of servers that offer more than tools is expected to fail,
//! each for the reason that stands in `conformance/expected-failures.yaml`.
#![expect(clippy::disallowed_methods, reason = "the suite is a program that is started")]

#[path = "support/agent.rs"]
#[expect(dead_code, reason = "shared with the tests of the bridge, which use all of it")]
mod agent;
#[path = "conformance/proxy.rs"]
mod proxy;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gembridge_core::model::{ClientTool, Content, ToolReturn};
use gembridge_core::tool_host::{HostedCall, Offer, ToolHost, ToolNews};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

use agent::{bridge, done, tool};

const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const SCHEMA: &str = r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},"additionalProperties":false}"##;
const TOOLS: [&str; 7] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_progress",
];

/// What the client's tools return.
async fn answer(call: HostedCall) {
    let image = || Content::Image { mime: "image/png".into(), data: PIXEL.into(), uri: None };
    let document = |uri: &str| Content::Document {
        uri: uri.into(),
        mime: Some("text/plain".into()),
        text: "an embedded resource".into(),
    };
    let returned = match &*call.tool {
        "test_simple_text" => done(vec![Content::text("a simple text")]),
        "test_image_content" => done(vec![image()]),
        "test_audio_content" => done(vec![Content::Audio { mime: "audio/wav".into(), data: "UklGRg==".into() }]),
        "test_embedded_resource" => done(vec![document("test://embedded")]),
        "test_multiple_content_types" => done(vec![Content::text("mixed"), image(), document("test://mixed")]),
        "test_tool_with_progress" => {
            // Long enough to hear of it many times.
            sleep(Duration::from_secs(1)).await;
            done(vec![Content::text("after a while")])
        }
        _ => ToolReturn::failed("this tool fails on purpose"),
    };
    call.reply.send(returned).unwrap();
}

async fn run_tools(mut news: mpsc::Receiver<ToolNews>) {
    let mut running = JoinSet::new();
    while let Some(news) = news.recv().await {
        if let ToolNews::Called(call) = news {
            running.spawn(answer(call));
        }
    }
}

fn packages() -> PathBuf {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/node/node_modules");
    assert!(packages.exists(), "the suite is not at `{}`: run `make test`", packages.display());
    packages
}

/// The one that came as a package, or the machine's own.
fn node() -> PathBuf {
    let versions = ["x64", "arm64"].map(|kind| packages().join(format!("node-linux-{kind}/bin/node")));
    versions.into_iter().find(|path| path.exists()).unwrap_or_else(|| OsString::from("node").into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_conformance_suite_passes_for_what_a_tool_server_is() {
    let bridge = bridge().await;
    let mut endpoint = bridge.open().unwrap();
    let tools = TOOLS.iter().map(|name| tool(name, r#"{"type":"object"}"#));
    let tools = tools.chain([tool("json_schema_2020_12_tool", SCHEMA)]);
    let tools = tools.map(|tool| ClientTool { description: Some("for the suite".into()), ..tool }).collect();
    drop(endpoint.list.offer(Offer { tools, format: None }));
    let mut tasks = JoinSet::new();
    tasks.spawn(run_tools(endpoint.news));
    let proxy = proxy::start(bridge.address(), &endpoint.server.headers[0].1, &mut tasks).await;

    let results = tempfile::tempdir().unwrap();
    let mut suite = Command::new(node());
    suite
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("HOME", results.path())
        .arg(packages().join("@modelcontextprotocol/conformance/dist/index.js"))
        .args(["server", "--suite", "all", "--url", &format!("http://{proxy}/mcp"), "--output-dir"])
        .arg(results.path())
        .arg("--expected-failures")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/expected-failures.yaml"));
    let output = tokio::task::spawn_blocking(move || suite.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("tools-call-simple-text"), "the suite ran nothing: {said}");
    tasks.shutdown().await;
    bridge.shutdown().await;
}
