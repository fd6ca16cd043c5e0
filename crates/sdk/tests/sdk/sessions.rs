//! Sessions that remember, and many at once.

use futures_util::future::join_all;
use gembridge_sdk::SessionState;
use serde_json::Value;

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
    let adapter = fake.in_workspace(&args).build().unwrap();
    let mut session = adapter.session().await.unwrap();
    session.evaluate("say remember me").await.unwrap();
    let state = session.state().await.unwrap().unwrap();
    drop(session);
    adapter.close().await;
    assert!(!entries(&fake.path("state")).is_empty());

    let written = serde_json::to_string(&state).unwrap();
    let state: SessionState = serde_json::from_str(&written).unwrap();
    assert_eq!(state.workspace, fake.workspace());
    let later = fake.in_workspace(&args).build().unwrap();
    let mut session = later.resume(&state).await.unwrap();
    session.evaluate("say again").await.unwrap();
    let named: Vec<Value> = fake.received("session/load").into_iter().chain(fake.received("session/resume")).collect();
    assert_eq!(named.len(), 1);
    assert_eq!(named[0]["params"]["sessionId"], state.session_id.as_str());
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
