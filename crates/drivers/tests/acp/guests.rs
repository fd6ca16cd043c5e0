//! What a client without the operator's rights may say to an agent, and what reaches the agent of it.

use std::sync::Arc;

use bytes::Bytes;
use gembridge_core::driver::Change;
use gembridge_core::error::Error;
use gembridge_core::model::{ClientId, Content, Failure, FailureKind, Opaque, Prompt};
use gembridge_core::session::NewSession;
use gembridge_drivers::profile::{ApprovalMode, Mode};
use serde_json::{Value, json};

use super::agent_fixture::{AgentFixture, Client, ScriptedAgent};

/// The fake agent's modes, as a profile would list them.
fn with_modes(mut plan: ScriptedAgent) -> ScriptedAgent {
    plan.setup.profile.modes = [
        (ApprovalMode::Default, "default", false),
        (ApprovalMode::AutoEdit, "autoEdit", true),
        (ApprovalMode::Yolo, "yolo", true),
        (ApprovalMode::Plan, "plan", false),
    ]
    .map(|(mode, id, privileged)| (mode, Mode { id: id.to_owned(), privileged }))
    .into();
    plan
}

fn opaque(value: &Value) -> Opaque {
    Opaque(Bytes::from(value.to_string()))
}

fn option(id: &str, value: &Value) -> Change {
    Change::Option { id: id.into(), value: opaque(value) }
}

fn extension(method: &str, params: &Value) -> Change {
    Change::Extension { method: method.into(), params: opaque(params) }
}

async fn woken(fixture: &AgentFixture) -> Client {
    let client = fixture.session().await;
    client.handle.wake().await.unwrap();
    client
}

async fn refused(client: &Client, change: Change) -> Failure {
    match client.handle.change(change).await {
        Err(Error::Agent(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn f1_no_extension_method_of_a_guest_reaches_the_agent_whatever_the_profile_lists() {
    let fixture = ScriptedAgent::fake_chat(&[]).extensions(&["_fake/echo"]).for_guests().start();
    let client = woken(&fixture).await;
    for method in ["session/fork", "providers/set", "fs/read_text_file", "_fake/echo"] {
        let failure = refused(&client, extension(method, &json!({ "cwd": "/" }))).await;
        assert_eq!(failure.kind, FailureKind::Unsupported, "{method}: {failure}");
        assert_eq!(fixture.record.messages_of(method).len(), 0, "{method}");
    }
    fixture.end().await;
}

#[tokio::test]
async fn f1_an_operators_extension_methods_are_those_that_the_profile_lists() {
    let fixture = ScriptedAgent::fake_chat(&[]).extensions(&["_fake/echo"]).start();
    let client = woken(&fixture).await;
    for method in ["session/fork", "_fake/other"] {
        let failure = refused(&client, extension(method, &json!({}))).await;
        assert_eq!(failure.kind, FailureKind::Unsupported, "{method}: {failure}");
    }
    client.handle.change(extension("_fake/echo", &json!({ "x": 1 }))).await.unwrap();
    for params in [
        json!({ "cwd": "/etc" }),
        json!({ "deep": [{ "mcpServers": [] }] }),
        json!({ "_meta": { "options": { "additionalDirectories": ["/"] } } }),
        json!({ "server": { "COMMAND": "/bin/sh" } }),
    ] {
        let failure = refused(&client, extension("_fake/echo", &params)).await;
        assert_eq!(failure.kind, FailureKind::Forbidden, "{params}: {failure}");
    }
    assert_eq!(fixture.record.messages_of("_fake/echo").len(), 1);
    assert_eq!(fixture.record.messages_of("session/fork").len() + fixture.record.messages_of("_fake/other").len(), 0);
    fixture.end().await;
}

#[tokio::test]
async fn f2_a_guests_link_reaches_the_agent_as_text() {
    let fixture = ScriptedAgent::fake_chat(&[]).for_guests().start();
    let mut client = fixture.session().await;
    let link = Content::Link { uri: "file:///etc/passwd".into(), name: "x".into(), mime: None };
    let prompt = Prompt::new(vec![Content::text("echo"), link]);
    let turn = client.handle.prompt(prompt, ClientId(1)).await.unwrap().turn;
    let said: Value = serde_json::from_str(&client.finish(turn).await.finished()).unwrap();
    assert_eq!(
        said,
        json!([{ "type": "text", "text": "echo" }, { "type": "text", "text": "[x](file:///etc/passwd)" }])
    );
    fixture.end().await;
}

#[tokio::test]
async fn f2_an_agent_in_a_workspace_gets_links_into_it_and_no_other() {
    let fixture = ScriptedAgent::fake(&[]).start();
    std::fs::write(fixture.workspace().join("notes.txt"), "x").unwrap();
    let mut client = fixture.session().await;
    let inside = format!("file://{}/notes.txt", fixture.workspace().display());
    let link = |uri: &str| Content::Link { uri: uri.into(), name: "n".into(), mime: None };
    let prompt = Prompt::new(vec![Content::text("echo"), link(&inside), link("file:///etc/passwd")]);
    let turn = client.handle.prompt(prompt, ClientId(1)).await.unwrap().turn;
    let said: Value = serde_json::from_str(&client.finish(turn).await.finished()).unwrap();
    assert_eq!(
        said,
        json!([
            { "type": "text", "text": "echo" },
            { "type": "resource_link", "uri": inside, "name": "n" },
            { "type": "text", "text": "[n](file:///etc/passwd)" },
        ])
    );
    fixture.end().await;
}

#[tokio::test]
async fn f3_a_guest_chooses_only_modes_and_options_that_grant_nothing() {
    let fixture = with_modes(ScriptedAgent::fake_chat(&[])).for_guests().start();
    let client = woken(&fixture).await;
    for mode in ["yolo", "autoEdit", "unlisted"] {
        let failure = refused(&client, Change::Mode(mode.into())).await;
        assert_eq!(failure.kind, FailureKind::Forbidden, "{mode}: {failure}");
        assert!(failure.message.contains("`default`, `plan`"), "the way out: {failure}");
    }
    for (id, value) in [("verbose", json!(true)), ("unknown", json!("x"))] {
        let failure = refused(&client, option(id, &value)).await;
        assert_eq!(failure.kind, FailureKind::Forbidden, "{id}: {failure}");
    }
    assert_eq!(fixture.record.messages_of("session/set_mode").len(), 0);
    assert_eq!(fixture.record.messages_of("session/set_config_option").len(), 0);
    client.handle.change(Change::Mode("plan".into())).await.unwrap();
    client.handle.change(option("model", &json!("fake-small"))).await.unwrap();
    let facts = client.handle.describe().await.unwrap().facts;
    let modes: Vec<&str> = facts.modes.iter().map(|mode| &*mode.id).collect();
    assert_eq!(modes, ["default", "plan"], "no client is shown what it cannot choose");
    fixture.end().await;
}

#[tokio::test]
async fn f3_a_session_of_a_guest_that_has_a_privileged_mode_from_before_goes_on_without_it() {
    let fixture = with_modes(ScriptedAgent::fake_chat(&[])).for_guests().start();
    let new = NewSession { mode: Some(Arc::from("yolo")), ..fixture.new_session() };
    let client = fixture.session_with(new).await;
    client.handle.wake().await.unwrap();
    assert_eq!(fixture.record.messages_of("session/set_mode").len(), 0);
    fixture.end().await;
}

#[tokio::test]
async fn f3_the_operator_chooses_any_mode_in_a_trusted_folder() {
    let fixture = with_modes(ScriptedAgent::fake(&[])).start();
    let client = woken(&fixture).await;
    client.handle.change(Change::Mode("yolo".into())).await.unwrap();
    assert_eq!(fixture.received("session/set_mode", 1).await["params"]["modeId"], "yolo");
    fixture.end().await;
}
