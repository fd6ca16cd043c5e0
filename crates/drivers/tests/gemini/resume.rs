//! A session of a process that is gone, loaded from the agent's own files.

use std::sync::Arc;

use crate::agent_fixture::turn_items::Item;
use gembridge_core::model::Event;
use gembridge_core::session::Viewer;

use super::gemini_fixture::GeminiAgent;
use crate::agent_fixture::Client;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_loaded_with_its_memory_after_everything_ended() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = GeminiAgent::agent().await.lasting(folder.path()).start();
    let mut client = fixture.session().await;
    assert_eq!(client.turn("remember the plum").await.text(), "You said: remember the plum");
    let id = client.handle.id();
    let store = Arc::clone(fixture.sessions.store());
    fixture.end().await;

    // The same store under a new driver, as after a restart. The agent loses a session that is loaded in the minute
    // of its creation, so this may wait for the next one.
    let mut plan = GeminiAgent::agent().await.lasting(folder.path());
    plan.plan.store = store;
    let fixture = plan.start();
    let handle = fixture.sessions.get(id, &Viewer::Admin).await.unwrap();
    let before = handle.describe().await.unwrap().last;
    handle.wake().await.unwrap();

    let mut client = Client::attach(handle).await;
    let turned = client.turn("what was it?").await;
    assert_eq!(turned.fold().items(), [Item::Message("You said: what was it?".to_owned())]);
    let body = fixture.api.model_calls()[0].body["contents"].to_string();
    assert!(body.contains("remember the plum") && body.contains("You said: "), "the memory is back: {body}");

    let between = client.seen().iter().filter(|entry| entry.seq > before && entry.turn.is_none());
    let replayed: Vec<_> =
        between.filter(|entry| !matches!(entry.event, Event::Commands(_) | Event::Mode(_))).collect();
    assert!(replayed.is_empty(), "nothing of the replay is shown, and no loss is told: {replayed:?}");
    fixture.end().await;
}
