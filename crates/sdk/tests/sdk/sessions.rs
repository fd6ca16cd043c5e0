//! Sessions that remember, and many at once.

use std::sync::{Arc, OnceLock};

use futures_util::future::join_all;
use gembridge_sdk::schemars::{self, JsonSchema};
use gembridge_sdk::{Adapter, ErrorKind, SessionState, Tool};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fixture::{Fake, demo, entries};

#[tokio::test]
async fn a_session_remembers_and_evaluations_of_their_own_do_not() {
    let adapter = demo().build().unwrap();
    let mut session = adapter.session().await.unwrap();
    session.evaluate("hello river").await.unwrap();
    let history = session.evaluate("history").await.unwrap();
    assert!(history.text.contains("hello river"), "{}", history.text);
    let other = adapter.evaluate("history").await.unwrap();
    assert!(!other.text.contains("hello river"), "{}", other.text);
    adapter.close().await;
}

#[tokio::test]
async fn a_session_is_loaded_by_another_process_from_its_state() {
    let fake = Fake::new();
    let args = ["--state", "DIR/state"];
    let server = |adapter: gembridge_sdk::AdapterBuilder| adapter.mcp_server("more", "http://127.0.0.1:9/mcp", []);
    let adapter = server(fake.in_workspace(&args)).build().unwrap();
    let mut session = adapter.session().await.unwrap();
    session.evaluate("say remember me").await.unwrap();
    let state = session.state().await.unwrap().unwrap();
    drop(session);
    adapter.close().await;
    assert!(!entries(&fake.path("state")).is_empty());

    let written = serde_json::to_string(&state).unwrap();
    let state: SessionState = serde_json::from_str(&written).unwrap();
    assert_eq!(state.workspace, fake.workspace());
    let later = server(fake.in_workspace(&args)).build().unwrap();
    let mut session = later.resume(&state).await.unwrap();
    session.evaluate("say again").await.unwrap();
    let named: Vec<Value> = fake.received("session/load").into_iter().chain(fake.received("session/resume")).collect();
    assert_eq!(named.len(), 1);
    assert_eq!(named[0]["params"]["sessionId"], state.session_id.as_str());
    assert_eq!(named[0]["params"]["mcpServers"][0]["name"], "more", "it has its servers again");
    assert_eq!(fake.received("session/new").len(), 1, "nothing was begun anew");
    later.close().await;
}

#[tokio::test]
async fn sixty_four_evaluations_at_once_share_few_processes_and_mix_nothing_up() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).sessions_per_process(64).build().unwrap();
    let asked = (0..64).map(|number| {
        let adapter = adapter.clone();
        async move {
            let script = format!("say begin-{number} ;; chunks 20 ;; think t{number} ;; say end-{number} ;; usage");
            (number, adapter.evaluate(script).await.unwrap())
        }
    });
    let replies = join_all(asked).await;
    let chunks = (0..20).map(|chunk| format!("chunk-{chunk} ")).collect::<Vec<_>>().concat();
    let mut sessions: Vec<String> = Vec::new();
    for (number, reply) in replies {
        assert_eq!(reply.text, format!("begin-{number}{chunks}end-{number}"));
        assert_eq!(reply.thoughts, format!("t{number}"));
        sessions.push(reply.session);
    }
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), 64);
    assert!(adapter.processes() <= 2, "{} processes", adapter.processes());
    assert!(fake.received("initialize").len() <= 2);
    adapter.close().await;
    fake.is_deserted().await;
}

#[tokio::test]
async fn an_agent_that_cannot_load_begins_anew_and_the_reply_says_so() {
    let fake = Fake::new();
    let adapter = fake.in_workspace(&["--without", "load,resume"]).build().unwrap();
    let mut session = adapter.session().await.unwrap();
    session.evaluate("say once").await.unwrap();
    let state = session.state().await.unwrap().unwrap();
    drop(session);
    let mut later = adapter.resume(&state).await.unwrap();
    let reply = later.evaluate("say again").await.unwrap();
    assert_eq!(reply.text, "again");
    assert!(reply.warnings.iter().any(|warning| warning.contains(&state.session_id)), "{:?}", reply.warnings);
    assert_eq!(later.evaluate("say more").await.unwrap().warnings, Vec::<String>::new(), "it is said once");
    adapter.close().await;
}

#[tokio::test]
async fn a_session_whose_private_folder_is_gone_is_refused() {
    let fake = Fake::new();
    let adapter = fake.adapter(&[]).build().unwrap();
    let mut session = adapter.session().await.unwrap();
    session.evaluate("say once").await.unwrap();
    let state = session.state().await.unwrap().unwrap();
    drop(session);
    adapter.close().await;
    let error = fake.adapter(&[]).build().unwrap().resume(&state).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid, "{error}");
}

#[tokio::test]
async fn a_session_is_not_gone_on_with_in_another_folder_of_the_same_name() {
    let fake = Fake::new();
    let args = ["--state", "DIR/state"];
    let adapter = fake.in_workspace(&args).build().unwrap();
    let mut session = adapter.session().await.unwrap();
    session.evaluate("say once").await.unwrap();
    let state = session.state().await.unwrap().unwrap();
    assert!(state.workspace_fingerprint.is_some());
    drop(session);
    std::fs::rename(fake.workspace(), fake.path("moved")).unwrap();
    std::fs::create_dir(fake.workspace()).unwrap();

    let mut later = adapter.resume(&state).await.unwrap();
    let reply = later.evaluate("say again").await.unwrap();
    assert_eq!(reply.text, "again");
    assert!(reply.warnings[0].contains("is not the folder any more"), "{:?}", reply.warnings);
    assert_eq!(fake.received("session/new").len(), 2, "it was begun anew");
    assert_ne!(later.state().await.unwrap().unwrap().workspace_fingerprint, state.workspace_fingerprint);

    // A state that was written before there were fingerprints is loaded as it was.
    let mut old = serde_json::to_value(&state).unwrap();
    old.as_object_mut().unwrap().remove("workspace_fingerprint");
    let old: SessionState = serde_json::from_value(old).unwrap();
    let reply = adapter.resume(&old).await.unwrap().evaluate("say more").await.unwrap();
    assert_eq!(reply.warnings, Vec::<String>::new());
    adapter.close().await;
}

#[derive(Deserialize, JsonSchema)]
struct Number {
    value: u64,
}

#[tokio::test]
async fn functions_that_are_called_by_many_sessions_at_once_answer_each_its_own() {
    let double = Tool::new("double", "Doubles", |number: Number| async move { Ok(number.value * 2) });
    let adapter = demo().tool(double).build().unwrap();
    let asked = (0..32).map(|number| {
        let adapter = adapter.clone();
        async move {
            let value = 1_000 + number;
            let reply = adapter.evaluate(format!(r#"call double {{"value": {value}}}"#)).await.unwrap();
            (value * 2, reply)
        }
    });
    for (expected, reply) in join_all(asked).await {
        assert!(reply.text.contains(&expected.to_string()), "{expected}: {}", reply.text);
        assert_eq!(reply.tools.len(), 1);
    }
    adapter.close().await;
}

#[tokio::test]
async fn a_function_may_ask_the_same_agent_even_where_one_turn_runs_at_a_time() {
    let inner: Arc<OnceLock<Adapter>> = Arc::default();
    let agent = Arc::clone(&inner);
    let ask = Tool::with_schema("ask", "Asks another session", &json!({"type": "object"}), move |_| {
        let adapter = agent.get().unwrap().clone();
        async move { Ok(adapter.evaluate("from within").await?.text) }
    });
    let adapter = demo().tool(ask).concurrency(1).build().unwrap();
    inner.set(adapter.clone()).unwrap();
    let reply = adapter.evaluate("call ask {}").await.unwrap();
    assert!(reply.text.contains("from within"), "{}", reply.text);
    adapter.close().await;
}
