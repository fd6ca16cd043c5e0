//! What we ask of an agent: sessions opened, loaded and closed, modes and models set, prompts sent.

use bytes::Bytes;
use gembridge_core::driver::{Change, ServerOrigin, ToolServer};
use gembridge_core::error::Error;
use gembridge_core::model::{ClientId, Content, Event, FailureKind, Opaque, Principal, Prompt};
use gembridge_core::session::{NewSession, Viewer};
use gembridge_drivers::profile::{LoginFound, Quirk};
use serde_json::{Value, json};

use super::agent_fixture::{AgentFixture, Client, ScriptedAgent};

fn value(opaque: &Opaque) -> Value {
    serde_json::from_slice(&opaque.0).unwrap()
}

fn opaque(value: &Value) -> Opaque {
    Opaque(Bytes::from(value.to_string()))
}

#[tokio::test]
async fn a_session_opens_with_what_was_asked_for_and_says_what_it_has() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let server = ToolServer {
        name: "host-tools".into(),
        url: "http://127.0.0.1:1/mcp".into(),
        headers: vec![("authorization".into(), "Bearer x".into())],
        origin: ServerOrigin::Ours,
    };
    let new = NewSession {
        model: Some("fake-small".into()),
        mode: Some("plan".into()),
        tool_servers: vec![server],
        ..fixture.new_session()
    };
    let mut client = fixture.session_with(new).await;
    let facts = client.handle.wake().await.unwrap();
    assert_eq!((facts.model.as_deref(), facts.mode.as_deref()), (Some("fake-small"), Some("plan")));
    assert_eq!(
        facts.models.iter().map(|model| &*model.id).collect::<Vec<_>>(),
        ["fake-large", "fake-small", "fake-tiny"]
    );
    assert_eq!(facts.modes.len(), 4);
    let given: Value = serde_json::from_str(&client.turn("session").await.finished()).unwrap();
    assert_eq!(given["cwd"], fixture.workspace().to_str().unwrap());
    assert_eq!(
        given["mcpServers"],
        json!([{"type": "http", "name": "host-tools", "url": "http://127.0.0.1:1/mcp",
        "headers": [{"name": "authorization", "value": "Bearer x"}]}])
    );
    assert_eq!(fixture.record.messages_of("session/set_model")[0]["params"]["modelId"], "fake-small");
    assert_eq!(fixture.record.messages_of("session/set_mode")[0]["params"]["modeId"], "plan");
    fixture.end().await;
}

#[tokio::test]
async fn modes_models_and_options_are_changed_and_the_change_is_told_to_everybody() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let mut client = fixture.session().await;
    client.handle.wake().await.unwrap();
    client.handle.change(Change::Mode("autoEdit".into())).await.unwrap();
    client.until(|event| matches!(event, Event::Mode(mode) if &**mode == "autoEdit").then_some(())).await;
    client.handle.change(Change::Model("fake-tiny".into())).await.unwrap();
    client.until(|event| matches!(event, Event::Model(model) if &**model == "fake-tiny").then_some(())).await;
    let change = Change::Option { id: "verbose".into(), value: opaque(&json!(true)) };
    let changed = client.handle.change(change).await.unwrap();
    let options =
        client.until(|event| if let Event::Options(options) = event { Some(value(options)) } else { None }).await;
    assert_eq!((&options[1]["id"], &options[1]["currentValue"]), (&json!("verbose"), &json!(true)));
    assert_eq!(value(&changed.answer.unwrap())["configOptions"], options);
    let facts = client.handle.describe().await.unwrap().facts;
    assert_eq!((facts.mode.as_deref(), facts.model.as_deref()), (Some("autoEdit"), Some("fake-tiny")));
    fixture.end().await;
}

#[tokio::test]
async fn a_model_is_set_by_its_option_where_there_is_no_other_way() {
    let fixture = ScriptedAgent::fake(&["--without", "models"]).start();
    let client = fixture.session().await;
    let facts = client.handle.wake().await.unwrap();
    assert_eq!(facts.models.len(), 3, "the option's values are the models");
    client.handle.change(Change::Model("fake-small".into())).await.unwrap();
    let set = fixture.received("session/set_config_option", 1).await;
    assert_eq!((&set["params"]["configId"], &set["params"]["value"]), (&json!("model"), &json!("fake-small")));
    assert_eq!(fixture.record.messages_of("session/set_model").len(), 0);
    fixture.end().await;
}

#[tokio::test]
async fn s12_a_model_that_the_agent_does_not_list_is_refused_with_the_list() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let client = fixture.session().await;
    client.handle.wake().await.unwrap();
    let refused = client.handle.change(Change::Model("gpt-99".into())).await.unwrap_err();
    assert!(refused.to_string().contains("fake-large, fake-small, fake-tiny"), "{refused}");
    let new = NewSession { model: Some("gpt-99".into()), ..fixture.new_session() };
    let failure = fixture.session_with(new).await.turn("say hello").await;
    assert!(failure.failed_as(FailureKind::Unsupported).message.contains("fake-large"));
    assert_eq!(fixture.record.messages_of("session/set_model").len(), 0);
    fixture.received("session/close", 1).await;
    assert_eq!(fixture.driver.processes()[0].sessions, 1, "the session that came to nothing gave its place back");
    fixture.end().await;
}

#[tokio::test]
async fn a_mode_that_the_agent_refuses_is_told_to_whoever_asked() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let client = fixture.session().await;
    client.handle.wake().await.unwrap();
    let refused = client.handle.change(Change::Mode("dance".into())).await.unwrap_err();
    assert!(
        matches!(&refused, Error::Agent(failure) if failure.kind == FailureKind::Refused { code: -32602 }),
        "{refused:?}"
    );
    fixture.end().await;
}

#[tokio::test]
async fn a_listed_extension_method_goes_to_the_agent_and_its_answer_comes_back_whole() {
    let fixture = ScriptedAgent::fake(&[]).extensions(&["_fake/echo", "_fake/none"]).start();
    let client = fixture.session().await;
    client.handle.wake().await.unwrap();
    let params = json!({"deep": [1, {"x": null}]});
    let change = Change::Extension { method: "_fake/echo".into(), params: opaque(&params) };
    assert_eq!(value(&client.handle.change(change).await.unwrap().answer.unwrap()), params);
    let unknown = Change::Extension { method: "_fake/none".into(), params: opaque(&json!({})) };
    let error = client.handle.change(unknown).await.unwrap_err();
    let refused = FailureKind::Refused { code: -32601 };
    assert!(matches!(&error, Error::Agent(failure) if failure.kind == refused), "{error:?}");
    fixture.end().await;
}

#[tokio::test]
async fn a_prompt_carries_every_kind_of_content_and_hostile_text_unchanged() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let mut client = fixture.session().await;
    let hostile = "echo\n\u{0}\u{1b}[2J \"; touch pwn # $(id) --yolo \u{202e} 😀 \\u0041";
    let content = vec![
        Content::text(hostile),
        Content::Image { mime: "image/png".into(), data: "AAAA".into(), uri: None },
        Content::Link { uri: "https://example.com/a".into(), name: "a".into(), mime: None },
        Content::Document { uri: "file:///b".into(), mime: Some("text/plain".into()), text: "b\"b".into() },
        Content::Blob { uri: "file:///c".into(), mime: None, data: "BBBB".into() },
        Content::Other { kind: "hologram".into(), body: opaque(&json!({"type": "hologram", "depth": 2})) },
    ];
    let turn = client.handle.prompt(Prompt::new(content), ClientId(1)).await.unwrap().turn;
    let said: Value = serde_json::from_str(&client.finish(turn).await.finished()).unwrap();
    assert_eq!(
        said,
        json!([
            {"type": "text", "text": hostile},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource_link", "uri": "https://example.com/a", "name": "a"},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "text/plain", "text": "b\"b"}},
            {"type": "resource", "resource": {"uri": "file:///c", "blob": "BBBB"}},
            {"type": "hologram", "depth": 2},
        ])
    );
    fixture.end().await;
}

#[tokio::test]
async fn a_second_prompt_waits_for_the_first_even_where_the_agent_would_drop_it() {
    let fixture = ScriptedAgent::fake(&["--quirk", "second-prompt-cancels-first"]).start();
    let (gate, until) = fixture.gate("go");
    let mut client = fixture.session().await;
    let first = client.prompt(&format!("say one ;; until {until}")).await;
    let second = client.prompt("say two").await;
    client.said("one").await;
    assert_eq!(fixture.record.messages_of("session/prompt").len(), 1);
    std::fs::write(gate, "").unwrap();
    assert_eq!(client.finish(first).await.finished(), "one");
    assert_eq!(client.finish(second).await.finished(), "two");
    fixture.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prompts_of_many_sessions_arrive_whole_although_no_pipe_holds_them() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let mut turns = Vec::new();
    for number in 0..8 {
        let client = fixture.session().await;
        let length = if number % 2 == 0 { 1 << 20 } else { 1 };
        turns.push((client, format!("{number}{}", "x".repeat(length))));
    }
    let mut ids = Vec::new();
    for (client, text) in &turns {
        ids.push(client.prompt(&format!("say {text}")).await);
    }
    for ((client, text), id) in turns.iter_mut().zip(ids) {
        assert!(client.finish(id).await.finished() == *text, "{} bytes", text.len());
    }
    assert_eq!(fixture.record.starts().len(), 1);
    fixture.end().await;
}

/// Leaves the session and comes back to it, as after a restart; its agent's process ends in between.
async fn come_back(fixture: &AgentFixture, mut client: Client) -> Client {
    let id = client.handle.id();
    client.turn("think ;; exit 0").await.failed_as(FailureKind::Crashed);
    client.handle.close().await.unwrap();
    let viewer = Viewer::Principal(Principal::new("tester"));
    super::agent_fixture::eventually("the session's task has ended", || client.handle.is_closed().then_some(())).await;
    Client::attach(fixture.sessions.get(id, &viewer).await.unwrap()).await
}

async fn memory_survives(quirk: &str, without: &str, method: &str) {
    let plan = ScriptedAgent::fake(&["--state", "DIR/state", "--quirk", quirk, "--without", without]);
    let fixture = plan.quirks(&[Quirk::LoadReplayStraddlesResponse]).start();
    let mut client = fixture.session().await;
    client.turn("say remember me ;; think hard ;; tool read x").await.finished();
    let name = client.handle.describe().await.unwrap().record.agent_session.unwrap();
    let before = client.seen().len();
    let mut back = come_back(&fixture, client).await;
    let turned = back.turn("session").await;
    let given: Value = serde_json::from_str(&turned.finished()).unwrap();
    assert_eq!(given["sessionId"], *name, "the agent has the old session");
    let loaded = fixture.received(method, 1).await;
    assert_eq!(loaded["params"]["sessionId"], *name);
    let said =
        back.seen().iter().filter(|entry| matches!(&entry.event, Event::Text(text) if text.to_str() == "remember me"));
    assert_eq!(said.count(), 1, "what the agent repeats is in our log already");
    let replaced = |entry: &&gembridge_core::log::LogEntry| matches!(entry.event, Event::AgentReplaced { .. });
    assert_eq!(back.seen()[before..].iter().filter(replaced).count(), 0, "nothing was lost");
    fixture.end().await;
}

#[tokio::test]
async fn a_loaded_session_has_its_memory_and_its_replay_is_not_shown_again() {
    memory_survives("straddling-load", "resume", "session/load").await;
}

#[tokio::test]
async fn a_session_is_resumed_where_the_agent_can() {
    memory_survives("error-on-cancel", "load", "session/resume").await;
}

#[tokio::test]
async fn a_session_that_the_agent_no_longer_has_begins_anew_and_the_log_says_so() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let mut client = fixture.session().await;
    client.turn("say hello").await.finished();
    let mut back = come_back(&fixture, client).await;
    assert_eq!(back.turn("say new").await.finished(), "new");
    fixture.received("session/resume", 1).await;
    let replaced = back.seen().iter().filter(|entry| matches!(entry.event, Event::AgentReplaced { .. }));
    assert_eq!(replaced.count(), 1);
    fixture.end().await;
}

#[tokio::test]
async fn a_session_that_is_left_is_closed_at_the_agent_where_it_knows_how() {
    let fixture = ScriptedAgent::fake(&[]).start();
    let mut client = fixture.session().await;
    client.turn("say hello").await.finished();
    let name = client.handle.describe().await.unwrap().record.agent_session.unwrap();
    client.handle.close().await.unwrap();
    assert_eq!(fixture.received("session/close", 1).await["params"]["sessionId"], *name);
    assert_eq!(fixture.record.messages_of("session/cancel").len(), 0);
    fixture.end().await;
}

#[tokio::test]
async fn an_agent_without_a_login_is_named_with_the_way_to_log_in() {
    let mut plan = ScriptedAgent::fake(&["--mode", "needs-auth"]);
    plan.setup.profile.login_hint = "set `FAKE_KEY`".into();
    let fixture = plan.start();
    let turned = fixture.session().await.turn("say hello").await;
    let failure = turned.failed_as(FailureKind::NeedsLogin);
    assert!(failure.message.contains("not logged in") && failure.message.contains("set `FAKE_KEY`"), "{failure}");
    assert_eq!(fixture.record.messages_of("authenticate").len(), 0, "nothing of the operator's is changed");
    fixture.end().await;
}

#[tokio::test]
async fn a_login_from_the_environment_is_used_when_the_agent_asks_for_it() {
    let mut plan = ScriptedAgent::fake(&["--mode", "needs-auth"]);
    plan.setup.login = Some(LoginFound {
        kind: "fake-key".into(),
        title: "a key".into(),
        source: "FAKE_KEY".into(),
        private_home: true,
        personal: false,
        advice: None,
    });
    let fixture = plan.start();
    assert_eq!(fixture.session().await.turn("say in").await.finished(), "in");
    assert_eq!(fixture.received("authenticate", 1).await["params"]["methodId"], "fake-key");
    fixture.end().await;
}

#[tokio::test]
async fn an_agent_of_another_protocol_version_is_refused_in_one_sentence() {
    let fixture = ScriptedAgent::fake(&["--mode", "bad-version"]).start();
    let turned = fixture.session().await.turn("say hello").await;
    let failure = turned.failed_as(FailureKind::Protocol);
    assert!(failure.message.contains("version 99") && failure.message.contains("speaks 1"), "{failure}");
    assert!(!failure.message.contains('\n'));
    fixture.deserted().await;
    fixture.end().await;
}

#[tokio::test]
async fn what_the_agent_says_about_itself_is_known_once_it_was_seen() {
    let fixture = ScriptedAgent::fake(&[]).start();
    assert_eq!(fixture.driver.facts(), None);
    fixture.session().await.handle.wake().await.unwrap();
    let facts = fixture.driver.facts().unwrap();
    assert_eq!(facts.name.as_deref(), Some("fake-agent"));
    assert!(facts.load_session && facts.mcp_http && facts.prompt.image);
    assert_eq!(value(&facts.handshake.unwrap())["protocolVersion"], 1);
    let hello = &fixture.record.messages_of("initialize")[0]["params"];
    assert_eq!(
        hello["clientCapabilities"],
        json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true})
    );
    fixture.end().await;
}
